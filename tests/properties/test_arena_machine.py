"""A machine that does anything to an arena and compares it with a plain dict."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
)

from engine.errors import OutOfMemoryError
from engine.memory.arena import Arena

UNIT, GUARD, SIZE = 64, 2 * 64, 66 * 64
SIZES = st.integers(1, 20 * UNIT)


def rounded(size: int) -> int:
    return -(-size // UNIT) * UNIT


class ArenaMachine(RuleBasedStateMachine):
    """Hold (offset, size) of what was lent in a dict; the rest follows from that."""

    blocks = Bundle("blocks")

    def __init__(self) -> None:
        super().__init__()
        self.arena = Arena(SIZE + 7, UNIT, guard_bytes=GUARD - 5)
        self.lent: dict[int, int] = {}
        self.fence = SIZE

    def gaps(self) -> list[tuple[int, int]]:
        """Return (offset, size) of what is free, found the slow way."""
        held = {u for o, s in self.lent.items() for u in range(o, o + s, UNIT)}
        found: list[tuple[int, int]] = []
        for unit in range(GUARD, self.fence, UNIT):
            if unit in held:
                continue
            if found and sum(found[-1]) == unit:
                found[-1] = (found[-1][0], found[-1][1] + UNIT)
            else:
                found.append((unit, UNIT))
        return found

    @rule(target=blocks, size=SIZES)
    def allocate_low(self, size: int):
        fitting = [(s, o) for o, s in self.gaps() if s >= size]
        if not fitting:
            return self.refused(lambda: self.arena.allocate(size))
        offset = self.arena.allocate(size)
        assert offset == min(fitting)[1]
        self.lent[offset] = rounded(size)
        return offset

    @rule(target=blocks, size=SIZES)
    def allocate_high(self, size: int):
        fitting = [o + s for o, s in self.gaps() if s >= size]
        if not fitting:
            return self.refused(lambda: self.arena.allocate(size, end="high"))
        offset = self.arena.allocate(size, end="high")
        assert offset + rounded(size) == max(fitting)
        self.lent[offset] = rounded(size)
        return offset

    @rule(target=blocks, unit=st.integers(0, SIZE // UNIT), size=SIZES)
    def allocate_at(self, unit: int, size: int):
        offset = unit * UNIT
        end = offset + rounded(size)
        if not any(o <= offset and end <= o + s for o, s in self.gaps()):
            return self.refused(lambda: self.arena.allocate_at(offset, size))
        self.arena.allocate_at(offset, size)
        self.lent[offset] = rounded(size)
        return offset

    def refused(self, call: Callable[[], object]):
        before = self.arena.state()
        with pytest.raises(OutOfMemoryError):
            call()
        assert self.arena.state() == before
        return multiple()

    @rule(offset=consumes(blocks))
    def free(self, offset: int):
        self.arena.free(offset)
        del self.lent[offset]

    @rule(offset=blocks, share=st.floats(0, 1))
    def shrink(self, offset: int, share: float):
        size = max(1, int(self.lent[offset] * share))
        self.arena.shrink(offset, size)
        self.lent[offset] = rounded(size)

    @rule(fence=st.integers(GUARD, SIZE))
    def move_the_fence(self, fence: int):
        self.arena.set_fence(fence)
        self.fence = fence - fence % UNIT

    @rule()
    def go_through_the_state(self):
        state = self.arena.state()
        self.arena = Arena.from_state(state)
        assert self.arena.state() == state

    @invariant()
    def blocks_are_those_of_the_dict(self):
        assert self.arena.blocks() == sorted(self.lent.items())

    @invariant()
    def holes_are_all_that_is_free_below_the_fence(self):
        assert self.arena.holes() == self.gaps()

    @invariant()
    def no_two_holes_are_neighbours(self):
        holes = self.arena.holes()
        for (offset, size), (after, _) in pairwise(holes):
            assert offset + size < after

    @invariant()
    def held_and_free_make_the_pool(self):
        arena = self.arena
        beyond = sum(
            o + s - max(o, self.fence) for o, s in self.lent.items() if o + s > self.fence
        )
        assert arena.held_bytes == sum(self.lent.values())
        assert arena.free_bytes == sum(size for _, size in self.gaps())
        assert arena.held_bytes + arena.free_bytes == arena.pool_bytes
        assert arena.pool_bytes == arena.target_bytes + beyond

    @invariant()
    def the_largest_hole_is_the_largest(self):
        largest = max((size for _, size in self.gaps()), default=0)
        assert self.arena.largest_hole_bytes == largest


TestArena = ArenaMachine.TestCase
TestArena.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
