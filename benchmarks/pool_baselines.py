"""Baselines of the pool benchmark: the allocators that everybody knows, each with plain LRU."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from engine.memory.compaction import Budget, plan_compaction
from engine.memory.eviction import Candidate

ALIGNMENT = 512
End = Literal["low", "high"]


class Allocator(Protocol):
    """Lend ranges of bytes."""

    def take(self, size_bytes: int, end: End, /) -> int | None:
        """Return the offset of a new block; None if there is no hole for it."""
        ...

    def give(self, offset: int) -> None:
        """Free a block."""
        ...

    def free_bytes(self) -> int:
        """Return the bytes of all holes."""
        ...


Pick = Callable[[list[tuple[int, int]], End], tuple[int, int]]


def first_fit(fitting: list[tuple[int, int]], _end: End) -> tuple[int, int]:
    """Return the lowest hole that is large enough."""
    return fitting[0]


def best_fit(fitting: list[tuple[int, int]], _end: End) -> tuple[int, int]:
    """Return the smallest hole that is large enough, the lowest of equals."""
    return min(fitting, key=lambda hole: (hole[1], hole[0]))


def two_ended(fitting: list[tuple[int, int]], end: End) -> tuple[int, int]:
    """Return the smallest hole for weights, the highest for a workspace."""
    return best_fit(fitting, end) if end == "low" else fitting[-1]


class ListArena:
    """Keep blocks in address order, find holes between them; as simple as it can be."""

    def __init__(self, size_bytes: int, pick: Pick) -> None:
        """Start with one hole."""
        self.size_bytes = size_bytes
        self._pick = pick
        self._blocks: list[tuple[int, int]] = []
        self._sizes: dict[int, int] = {}

    def holes(self) -> list[tuple[int, int]]:
        """Return (offset, size) of every hole, by offset."""
        found, at = [], 0
        for offset, size in [*self._blocks, (self.size_bytes, 0)]:
            if offset > at:
                found.append((at, offset - at))
            at = offset + size
        return found

    def take(self, size_bytes: int, end: End) -> int | None:
        """Return the offset of a new block; None if there is no hole for it."""
        fitting = [hole for hole in self.holes() if hole[1] >= size_bytes]
        if not fitting:
            return None
        offset, size = self._pick(fitting, end)
        if end == "high" and self._pick is two_ended:
            offset += size - size_bytes
        self.put(offset, size_bytes)
        return offset

    def put(self, offset: int, size_bytes: int) -> None:
        """Hold that very range, which is free."""
        insort(self._blocks, (offset, size_bytes))
        self._sizes[offset] = size_bytes

    def give(self, offset: int) -> None:
        """Free a block."""
        self._blocks.remove((offset, self._sizes.pop(offset)))

    def free_bytes(self) -> int:
        """Return the bytes of all holes."""
        return self.size_bytes - sum(self._sizes.values())


class BuddyArena:
    """Lend powers of two, each split from its double and merged with its twin.

    Source: Knowlton, A fast storage allocator, 1965.
    """

    def __init__(self, size_bytes: int) -> None:
        """Start with one hole; the size is a power of two."""
        assert size_bytes & (size_bytes - 1) == 0, "buddies are powers of two"
        self._size_bytes = size_bytes
        self._free: dict[int, set[int]] = {size_bytes: {0}}
        self._held: dict[int, int] = {}

    def take(self, size_bytes: int, _end: End, /) -> int | None:
        """Return the offset of a new block; None if there is no hole for it."""
        size = 1 << (size_bytes - 1).bit_length()
        found = min((s for s, at in self._free.items() if at and s >= size), default=None)
        if found is None:
            return None
        offset = min(self._free[found])
        self._free[found].remove(offset)
        while found > size:
            found //= 2
            self._free.setdefault(found, set()).add(offset + found)
        self._held[offset] = size
        return offset

    def give(self, offset: int) -> None:
        """Free a block and merge it as far as its twins are free."""
        size = self._held.pop(offset)
        while size < self._size_bytes and (offset ^ size) in self._free.get(size, ()):
            self._free[size].remove(offset ^ size)
            offset &= ~size
            size *= 2
        self._free.setdefault(size, set()).add(offset)

    def free_bytes(self) -> int:
        """Return the bytes of all holes."""
        return sum(size * len(at) for size, at in self._free.items())


@dataclass(slots=True)
class LruPool:
    """Keep models in an allocator; evict the least recently used one by one until it fits.

    Attributes:
        compacts: When enough bytes are free but no hole is, move instead of evicting.
    """

    allocator: Allocator
    weights: list[int]
    compacts: bool = False
    offsets: dict[int, int] = field(default_factory=dict)
    used_at: dict[int, int] = field(default_factory=dict)
    users: dict[int, int] = field(default_factory=dict)
    reloads: int = 0
    reloaded_bytes: int = 0
    moved_bytes: int = 0
    no_hole_events: int = 0
    now: int = 0

    def ensure(self, model: int) -> bool:
        """Have a model resident; return whether that worked."""
        self.now += 1
        self.used_at[model] = self.now
        if model in self.offsets:
            return True
        offset = self._room(self.weights[model], "low", asking=model)
        if offset is None:
            return False
        self.offsets[model] = offset
        self.reloads += 1
        self.reloaded_bytes += self.weights[model]
        return True

    def lease(self, model: int, size_bytes: int) -> int | None:
        """Take a workspace for a resident model; None if there is no room."""
        size_bytes += -size_bytes % ALIGNMENT
        offset = self._room(size_bytes, "high", asking=model)
        if offset is not None:
            self.users[model] = self.users.get(model, 0) + 1
        return offset

    def end(self, model: int, offset: int) -> None:
        """Give a workspace back."""
        self.allocator.give(offset)
        self.users[model] -= 1

    def _idle(self, asking: int) -> list[int]:
        return [m for m in self.offsets if m != asking and not self.users.get(m)]

    def _room(self, size_bytes: int, end: End, *, asking: int) -> int | None:
        while True:
            offset = self.allocator.take(size_bytes, end)
            if offset is not None:
                return offset
            if self.allocator.free_bytes() >= size_bytes:
                self.no_hole_events += 1
                if self.compacts and self._compact(size_bytes, asking):
                    continue
            idle = self._idle(asking)
            if not idle:
                return None
            victim = min(idle, key=self.used_at.__getitem__)
            self.allocator.give(self.offsets.pop(victim))

    def _compact(self, size_bytes: int, asking: int) -> bool:
        arena = self.allocator
        assert isinstance(arena, ListArena), "only such an arena has addresses to move to"
        movable = [self._movable(model) for model in self._idle(asking)]
        budget = Budget(1.0, arena.size_bytes)
        plan = plan_compaction(arena.holes(), movable, size_bytes=size_bytes, budget=budget)
        if plan is None:
            return False
        for move in plan.moves:
            arena.give(move.offset)
            arena.put(move.new_offset, move.size_bytes)
            self.offsets[int(move.model)] = move.new_offset
            self.moved_bytes += move.size_bytes
        return True

    def _movable(self, model: int) -> Candidate:
        return Candidate(
            model=str(model),
            size_bytes=self.weights[model],
            offset=self.offsets[model],
            last_used_ns=0,
            has_queue=False,
            serial=model,
            may_leave=False,
            may_move=True,
        )
