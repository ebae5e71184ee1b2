"""MemoryState: the frozen picture of all devices that feeds back into decisions and pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.reserve import ReservePart

BlockKind = Literal[
    "guard", "resident", "loading", "evicting", "lease", "moving", "claimed", "hole"
]


@dataclass(frozen=True, slots=True)
class BlockState:
    """Show one block or hole of an arena; all of them together tile it."""

    offset: int
    size_bytes: int
    kind: BlockKind
    model: str = ""


@dataclass(frozen=True, slots=True)
class ResidentState:
    """Show one model's weights on a device.

    Attributes:
        priority_class: The more urgent of its own class and its queued requests'.
        in_use: A batch of it runs or is prepared here.
        loads: How often it was loaded onto this device.
        is_movable: Compaction may move it.
        is_changing: It is being moved or converted.
        full_bytes: Size of its block at full precision.
        price_ns: Time of loads that its eviction is expected to cost.
    """

    model: str
    offset: int
    size_bytes: int
    precision: str
    priority_class: int
    loaded_ns: int
    last_used_ns: int
    in_use: bool
    pinned: bool
    loads: int
    is_movable: bool = True
    is_changing: bool = False
    full_bytes: int = 0
    price_ns: int = 0


@dataclass(frozen=True, slots=True)
class BatchState:
    """Show a batch that is prepared or runs on a device.

    Attributes:
        items: What it holds; what it could take now, while it is prepared.
        expected_ns: Expected time on the device.
    """

    batch_id: int
    model: str
    items: int
    capacity_items: int
    lease_bytes: int
    priority_class: int
    since_ns: int
    expected_ns: int


@dataclass(frozen=True, slots=True)
class DeviceState:
    """Show one device: its books, its blocks, what it is doing.

    `held + free = pool`; `reserve + pool = capacity`. For budgeted leases
    `lease_bytes` have no address and are not among the blocks.

    Attributes:
        pool_bytes: What residents and leases share now (the fence).
        pool_target_bytes: Where the fence is moving to.
        lease_bytes: Bytes of leases, addressed or budgeted.
        needed_lease_bytes: Part of `lease_bytes` that the batches in them need.
        holes: Sizes of the free blocks, ascending.
        busy_until_ns: When the running batch should end; the past if idle.
        queued_ns: Expected time of the loads that its loader still has to do.
        truth_bytes: What the device itself reports as used (0: unknown).
        busy_ns: Time since the start in which a batch ran; only ever grows.
        warm_bytes: Part of `lease_bytes` that is kept for the next batch.
        moved_bytes: Copied by compaction since the start; `moves` counts its blocks.
        reserve_parts: What the reserve is kept for; they add up to it.
        victim_idle_ns: How long the last victim had been idle; short: the pool thrashes.
    """

    name: str
    kind: str
    simulated: bool
    addressed: bool
    capacity_bytes: int
    reserve_bytes: int
    pool_bytes: int
    pool_target_bytes: int
    resident_bytes: int
    lease_bytes: int
    needed_lease_bytes: int
    free_bytes: int
    largest_hole_bytes: int
    external_fragmentation: float
    holes: tuple[int, ...]
    blocks: tuple[BlockState, ...]
    residents: tuple[ResidentState, ...]
    running: BatchState | None
    prepared: BatchState | None
    pending_loads: tuple[str, ...]
    busy_until_ns: int
    queued_ns: int
    load_bytes_per_s: float
    is_draining: bool
    is_lost: bool
    truth_bytes: int
    busy_ns: int = 0
    warm_bytes: int = 0
    move_bytes_per_s: float = 0.0
    moves: int = 0
    moved_bytes: int = 0
    conversions: int = 0
    evictions: int = 0
    victim_idle_ns: int | None = None
    reserve_parts: tuple[ReservePart, ...] = ()

    @property
    def held_bytes(self) -> int:
        """Return the bytes of the pool that are not free."""
        return self.pool_bytes - self.free_bytes

    @property
    def utilisation(self) -> float:
        """Return the held share of the pool, 0 to 1."""
        return self.held_bytes / self.pool_bytes if self.pool_bytes else 0.0


@dataclass(frozen=True, slots=True)
class MemoryState:
    """Show all devices at one instant, in the order in which they were added."""

    at_ns: int
    devices: tuple[DeviceState, ...]

    def device(self, name: str) -> DeviceState:
        """Return the device of that name.

        Raises:
            KeyError: There is none.
        """
        for device in self.devices:
            if device.name == name:
                return device
        raise KeyError(name)
