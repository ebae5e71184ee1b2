"""Holdings: what a device's pool holds - residents, leases, bytes being won - and plans."""

from __future__ import annotations

from dataclasses import dataclass, field

ALIGNMENT = 512


@dataclass(slots=True)
class Resident:
    """Hold the books of one model's weights on a device.

    Attributes:
        is_ready: The load has ended; before that nothing can run on it.
        is_leaving: Its eviction is under way; its bytes are still held.
        is_changing: It is being moved or converted; until that ends nothing can run on it.
        is_movable: Nothing outside the books keeps its address.
        is_kept: An operator chose its precision; it stays until it is evicted.
        users: Batches that run or are prepared on it.
        full_bytes: Size of its block at full precision.
    """

    model: str
    offset: int
    size_bytes: int
    serial: int
    loaded_ns: int = 0
    last_used_ns: int = 0
    precision: str = "fp32"
    is_ready: bool = False
    is_leaving: bool = False
    is_changing: bool = False
    is_movable: bool = True
    is_kept: bool = False
    users: int = 0
    full_bytes: int = 0

    @property
    def is_open(self) -> bool:
        """Return whether a batch may run on it."""
        return self.is_ready and not (self.is_leaving or self.is_changing)

    @property
    def is_idle(self) -> bool:
        """Return whether it may be evicted, moved or converted now."""
        return self.is_open and not self.users


@dataclass(frozen=True, slots=True)
class Lease:
    """Show the workspace of one batch; without an offset it is a budget."""

    size_bytes: int
    offset: int | None


@dataclass(frozen=True, slots=True)
class Move:
    """Say that a resident's block is to lie elsewhere; old and new place may overlap."""

    model: str
    offset: int
    new_offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Conversion:
    """Say that a resident is to have another precision.

    In place, at its offset, when it becomes smaller; in a block of its own
    when it becomes larger.
    """

    model: str
    precision: str
    offset: int
    new_offset: int
    size_bytes: int
    new_size_bytes: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Say how a wanted number of bytes can be had.

    Attributes:
        victims: Models to evict first, in that order; none: nobody has to go.
        window: Start and end of the range that is opened, if an address is wanted.
        moves: Moves inside the window, to be done in that order once the victims are gone.
        conversions: Residents that give up bytes by a lower precision.
        price_ns: Expected cost: loads that the victims will need again, and moves.
        instead_ns: What evictions without moves would have cost; 0 if that was no way.
    """

    victims: tuple[str, ...] = ()
    window: tuple[int, int] | None = None
    moves: tuple[Move, ...] = ()
    conversions: tuple[Conversion, ...] = ()
    price_ns: int = 0
    instead_ns: int = 0

    @property
    def is_free(self) -> bool:
        """Return whether the bytes can be had at once."""
        return not (self.victims or self.moves or self.conversions)

    @property
    def moved_bytes(self) -> int:
        """Return the bytes that its moves copy."""
        return sum(move.size_bytes for move in self.moves)


@dataclass(slots=True)
class Claim:
    """Hold bytes that are being won until the last of them is there.

    The window is one held block from the decision on, so that nobody else
    can take a part of it; residents that move lie inside it. Bytes without
    an address are counted as `won_bytes` and grow as the victims leave.

    Attributes:
        waiting_for: Victims that are not gone yet.
        moves: Moves that are still to be done.
        converting: Conversions that have not ended.
        tails: Held blocks behind residents that become smaller.
    """

    size_bytes: int
    window: tuple[int, int] | None
    waiting_for: set[str]
    won_bytes: int = 0
    moves: list[Move] = field(default_factory=list)
    movers: list[str] = field(default_factory=list)
    converting: dict[str, Conversion] = field(default_factory=dict)
    tails: list[int] = field(default_factory=list)

    @property
    def is_won(self) -> bool:
        """Return whether nothing is left to wait for."""
        return not (self.waiting_for or self.moves or self.converting)

    def holds_inside(self, offset: int) -> bool:
        """Return whether that address lies in its window."""
        return self.window is not None and self.window[0] <= offset < self.window[1]
