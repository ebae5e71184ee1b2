"""Pool: one shared byte range for anybody - request, release, available."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from engine.errors import InputError, OutOfMemoryError, PolicyError
from engine.memory.arena import Arena
from engine.memory.compaction import Budget, plan_compaction
from engine.memory.demand import Demand
from engine.memory.eviction import EVICTIONS, Candidate
from engine.memory.owners import Held, PoolCounts, Reload, whole_size
from engine.memory.windows import Window, plan_window
from engine.units import align_up, format_bytes

ALIGNMENT = 512
FORGETFUL, FORGOTTEN = 4096, 0.01
"""From so many owners on, those are forgotten whose count has faded below so much."""
Moved = Callable[[str, int, int], None]
"""Called with owner, old and new offset before the owner's block counts as moved."""


@dataclass(slots=True)
class Pool:
    """Share one range of bytes among owners; who was there longest unused goes first.

    The pool of the engine, without the engine: the same arena, the same
    eviction policies, the same planner of moves. It keeps books; the bytes
    themselves are the caller's, who is told through `on_evict` and `on_move`
    what has to leave or to be copied, before the books say that it did. Its
    time is the number of requests so far. Not for several threads at once
    without a lock of the caller's, and not to be changed from inside
    `on_evict` and `on_move`.

    Attributes:
        size_bytes: Of the range; rounded down to 512.
        eviction: `lru`, `cost_aware` or `priority_lru`.
        on_evict: Called with an owner whose bytes are about to be taken.
        on_move: Called for each block that is about to be moved; None: nothing moves.
        window: Requests after which an old one counts e times less, for `cost_aware`.
    """

    size_bytes: int
    eviction: str = "lru"
    on_evict: Callable[[str], None] | None = None
    on_move: Moved | None = None
    reload: Reload = field(default_factory=Reload)
    window: int = 1500
    counts: PoolCounts = field(default_factory=PoolCounts, init=False)
    _arena: Arena = field(init=False)
    _held: dict[str, Held] = field(default_factory=dict, init=False)
    _demand: dict[str, Demand] = field(default_factory=dict, init=False)
    _leases: set[int] = field(default_factory=set, init=False)
    _now: int = field(default=0, init=False)
    _is_telling: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Check the settings and lay out the range.

        Raises:
            PolicyError: There is no such eviction policy, or no room at all.
        """
        if self.eviction not in EVICTIONS:
            raise PolicyError(
                f"eviction: found {self.eviction!r}, wanted one of {', '.join(EVICTIONS)}"
            )
        if self.size_bytes < ALIGNMENT:
            raise PolicyError(f"size: found {self.size_bytes} B, wanted at least {ALIGNMENT} B")
        self._arena = Arena(self.size_bytes, ALIGNMENT, guard_bytes=0)

    def request(self, owner: str, size_bytes: int, *, priority_class: int = 5) -> int:
        """Give an owner a block, evicting idle owners until it fits; return its offset.

        An owner that has a block of at least that size keeps it: the call
        then says that it is used again.

        Args:
            size_bytes: More than 0; rounded up to 512.
            priority_class: 0 (most urgent) to 9; nobody more urgent is evicted for it.

        Raises:
            InputError: No size, no such class, or the owner's block is too small.
            OutOfMemoryError: Those who may go do not have the bytes; nothing changed.
        """
        held = self._checked(owner, size_bytes, priority_class=priority_class)
        self._now += 1
        if held is not None:
            self._note(owner)
            held.used_at, held.priority_class = self._now, priority_class
            return held.offset
        size = align_up(whole_size(owner, size_bytes), ALIGNMENT)
        if not self._arena.can_fit(size):
            self._make_room(owner, size, priority_class=priority_class)
        offset = self._arena.allocate(size, owner=owner)
        self._held[owner] = Held(offset, size, self._now, self._now, priority_class)
        self._note(owner)
        self.counts.granted += 1
        self.counts.granted_bytes += size
        return offset

    def use(self, owner: str) -> None:
        """Protect an owner from eviction and moves until as many `done`.

        Raises:
            InputError: It holds nothing.
        """
        self._check_not_telling()
        self._of(owner).users += 1

    def done(self, owner: str) -> None:
        """End one `use`.

        Raises:
            InputError: It holds nothing, or was not in use.
        """
        self._check_not_telling()
        held = self._of(owner)
        if not held.users:
            raise InputError(f"{owner}: found no use to end; call use before done")
        held.users -= 1

    def lease(self, owner: str, size_bytes: int) -> int:
        """Take a block from the high end for a short while; return its offset.

        It is never evicted and never moves; give it back with `end`.

        Raises:
            OutOfMemoryError: Those who may go do not have the bytes; nothing changed.
        """
        self._check_not_telling()
        size = align_up(whole_size(owner, size_bytes), ALIGNMENT)
        if not self._arena.can_fit(size):
            self._make_room(owner, size, priority_class=0)
        offset = self._arena.allocate(size, end="high", owner=owner)
        self._leases.add(offset)
        return offset

    def end(self, offset: int) -> None:
        """Give a lease back.

        Raises:
            InputError: No lease starts there, or it was given back already.
        """
        self._check_not_telling()
        if offset not in self._leases:
            raise InputError(
                f"end: found no lease at {offset}; give what `lease` returned, once"
            )
        self._leases.remove(offset)
        self._arena.free(offset)

    def release(self, owner: str) -> None:
        """Give back what an owner holds; one that holds nothing may say so again."""
        self._check_not_telling()
        self._drop(owner)

    def _drop(self, owner: str) -> None:
        held = self._held.pop(owner, None)
        if held is not None:
            self._arena.free(held.offset)

    def available(self) -> int:
        """Return the free bytes, in one piece or many."""
        return self._arena.free_bytes

    def holds(self, owner: str) -> bool:
        """Return whether an owner has a block."""
        return owner in self._held

    def offset(self, owner: str) -> int:
        """Return where an owner's block starts.

        Raises:
            InputError: It holds nothing.
        """
        return self._of(owner).offset

    def blocks(self) -> list[tuple[int, int, str]]:
        """Return (offset, size, owner) of all blocks, by offset."""
        arena = self._arena
        return [(offset, size, arena.owner(offset)) for offset, size in arena.blocks()]

    def _of(self, owner: str) -> Held:
        held = self._held.get(owner)
        if held is None:
            raise InputError(f"{owner}: holds nothing (evicted, or never asked); request first")
        return held

    def _checked(self, owner: str, size_bytes: int, *, priority_class: int) -> Held | None:
        self._check_not_telling()
        size_bytes = whole_size(owner, size_bytes)
        if not 0 <= priority_class <= 9:
            raise InputError(f"{owner}: found class {priority_class}, wanted 0 to 9")
        held = self._held.get(owner)
        if held is not None and size_bytes > held.size_bytes:
            raise InputError(
                f"{owner}: holds {format_bytes(held.size_bytes)}, wanted "
                f"{format_bytes(size_bytes)}; release it first"
            )
        return held

    def _check_not_telling(self) -> None:
        if self._is_telling:
            raise InputError(
                "pool: changed from inside on_evict or on_move; take note, change it later"
            )

    def _note(self, owner: str) -> None:
        """Count a request; owners that nobody asked for in long are forgotten."""
        self._demand.setdefault(owner, Demand()).note(self._now, self.window)
        if len(self._demand) > FORGETFUL + 2 * len(self._held):
            self._demand = {
                name: demand
                for name, demand in self._demand.items()
                if name in self._held or demand.at(self._now, self.window) > FORGOTTEN
            }

    @contextmanager
    def _telling(self) -> Iterator[None]:
        self._is_telling = True
        try:
            yield
        finally:
            self._is_telling = False

    def _make_room(self, owner: str, size: int, *, priority_class: int) -> None:
        """Evict and move as is cheapest, or change nothing and say that it is impossible."""
        arena = self._arena
        self.counts.no_hole += arena.free_bytes >= size
        policy = EVICTIONS[self.eviction]
        order = policy.order(self._candidates(owner, priority_class))
        window = plan_window(
            arena.holes(),
            [c for c in order if c.may_leave],
            size_bytes=size,
            is_priced=policy.is_priced,
        )
        if not self._compacted(order, size, window=window):
            if window is None:
                raise OutOfMemoryError(
                    f"{owner}: wanted {format_bytes(size)}, found "
                    f"{format_bytes(arena.free_bytes)} free and nobody who may go for it",
                    wanted_bytes=size,
                    free_bytes=arena.free_bytes,
                    largest_hole_bytes=arena.largest_hole_bytes,
                )
            self._evict(window.victims)

    def _compacted(self, order: list[Candidate], size: int, *, window: Window | None) -> bool:
        """Open the hole by moves, with evictions or without, if that costs less."""
        if self.on_move is None:
            return False
        budget = Budget(self.reload.move_ns_per_byte, self.size_bytes)
        plan = plan_compaction(self._arena.holes(), order, size_bytes=size, budget=budget)
        if plan is None or (window is not None and window.price_ns <= plan.price_ns):
            return False
        self._evict(plan.victims)
        for move in plan.moves:
            held = self._held[move.model]
            with self._telling():
                self.on_move(move.model, move.offset, move.new_offset)
            self._arena.free(held.offset)
            self._arena.allocate_at(move.new_offset, held.size_bytes, owner=move.model)
            held.offset = move.new_offset
            self.counts.moved_bytes += held.size_bytes
        return True

    def _evict(self, victims: Iterable[str]) -> None:
        for victim in victims:
            if self.on_evict is not None:
                with self._telling():
                    self.on_evict(victim)
            self._drop(victim)
            self.counts.evictions += 1

    def _candidates(self, owner: str, priority_class: int) -> list[Candidate]:
        price = self.reload
        return [
            Candidate(
                name,
                held.size_bytes,
                held.offset,
                held.used_at,
                has_queue=False,
                serial=held.serial,
                priority_class=held.priority_class,
                price_ns=self._demand[name].at(self._now, self.window)
                * (price.fixed_ns + price.ns_per_byte * held.size_bytes),
                may_leave=held.priority_class >= priority_class,
                may_move=True,
            )
            for name, held in self._held.items()
            if name != owner and not held.users
        ]
