"""Tests of the arena: which hole a block comes from, and what happens at the edges."""

from __future__ import annotations

import pytest

from engine.errors import OutOfMemoryError, PolicyError
from engine.memory.arena import Arena
from engine.units import MIB, counter_hash

UNIT = 512


def small(units: int, *, guard_units: int = 0) -> Arena:
    return Arena(units * UNIT, guard_bytes=guard_units * UNIT)


def checkered(blocks: int) -> Arena:
    """Return an arena with that many blocks and a one-unit hole behind each."""
    arena = small(2 * blocks + 100)
    for _ in range(blocks):
        arena.allocate(UNIT)
        arena.allocate(UNIT, owner="gap")
    for offset, _ in arena.blocks():
        if arena.owner(offset) == "gap":
            arena.free(offset)
    return arena


def test_the_guard_is_never_lent_and_is_not_part_of_the_pool():
    arena = Arena(10 * MIB)
    assert arena.allocate(1) == 2 * MIB
    assert arena.pool_bytes == arena.target_bytes == 8 * MIB
    with pytest.raises(OutOfMemoryError):
        arena.allocate_at(0, UNIT)


def test_an_arena_smaller_than_its_guard_is_a_wrong_setting():
    with pytest.raises(PolicyError, match=r"found 1\.0 MiB, wanted at least 2\.0 MiB"):
        Arena(MIB)


def test_a_block_is_as_large_as_the_next_multiple_of_the_alignment():
    arena = small(4)
    arena.allocate(UNIT + 1)
    assert arena.held_bytes == 2 * UNIT
    assert Arena(4 * UNIT + 100, guard_bytes=0).size_bytes == 4 * UNIT


def test_low_takes_the_smallest_hole_that_fits_and_the_lowest_among_equals():
    arena = small(20)
    for offset, size in [(0, 1), (4, 1), (7, 1), (10, 5)]:
        arena.allocate_at(offset * UNIT, size * UNIT)
    assert [size // UNIT for _, size in arena.holes()] == [3, 2, 2, 5]
    assert arena.allocate(2 * UNIT) == 5 * UNIT
    assert arena.allocate(2 * UNIT) == 8 * UNIT
    assert arena.allocate(2 * UNIT) == 1 * UNIT
    assert arena.allocate(2 * UNIT) == 15 * UNIT


def test_high_takes_the_highest_hole_that_fits_and_carves_it_from_the_top():
    arena = small(20)
    arena.allocate_at(10 * UNIT, UNIT)
    arena.allocate_at(18 * UNIT, UNIT)
    assert arena.allocate(2 * UNIT, end="high") == 16 * UNIT
    assert arena.allocate(8 * UNIT, end="high") == 2 * UNIT
    assert arena.allocate(UNIT, end="high") == 19 * UNIT


def test_high_finds_the_highest_whether_few_holes_fit_or_many():
    arena = checkered(50)
    arena.free(30 * UNIT)
    assert arena.allocate(3 * UNIT, end="high") == arena.size_bytes - 3 * UNIT
    arena.allocate(97 * UNIT, end="high")
    assert arena.allocate(2 * UNIT, end="high") == 30 * UNIT
    assert arena.allocate(UNIT, end="high") == 99 * UNIT


def test_a_freed_block_is_one_hole_with_both_its_neighbours():
    arena = small(3)
    first, middle, last = (arena.allocate(UNIT) for _ in range(3))
    arena.free(first)
    arena.free(last)
    assert len(arena.holes()) == 2
    arena.free(middle)
    assert arena.holes() == [(0, 3 * UNIT)]


def test_a_shrunk_block_gives_its_tail_to_the_hole_behind_it():
    arena = small(10)
    arena.allocate(6 * UNIT, owner="a")
    arena.shrink(0, 2 * UNIT + 1)
    assert arena.blocks() == [(0, 3 * UNIT)]
    assert arena.holes() == [(3 * UNIT, 7 * UNIT)]
    assert arena.owner(0) == "a"
    arena.shrink(0, 3 * UNIT)
    assert arena.blocks() == [(0, 3 * UNIT)]


def test_what_does_not_fit_changes_nothing_and_says_what_was_found():
    arena = small(10)
    arena.allocate_at(4 * UNIT, UNIT)
    before = arena.state()
    for call in (
        lambda: arena.allocate(6 * UNIT),
        lambda: arena.allocate(6 * UNIT, end="high"),
        lambda: arena.allocate_at(3 * UNIT, 6 * UNIT),
    ):
        with pytest.raises(OutOfMemoryError) as caught:
            call()
        error = caught.value
        assert error.wanted_bytes == 6 * UNIT
        assert error.free_bytes == 9 * UNIT
        assert error.largest_hole_bytes == 5 * UNIT
    assert arena.state() == before
    assert arena.can_fit(5 * UNIT)
    assert not arena.can_fit(5 * UNIT + 1)


def test_a_fence_that_comes_down_leaves_blocks_until_they_are_freed():
    arena = small(10)
    low, high = arena.allocate(UNIT), arena.allocate(4 * UNIT, end="high")
    arena.set_fence(8 * UNIT)
    assert arena.free_bytes == 5 * UNIT
    assert arena.pool_bytes == 10 * UNIT
    assert arena.target_bytes == 8 * UNIT
    arena.free(high)
    assert arena.holes() == [(UNIT, 7 * UNIT)]
    assert arena.pool_bytes == 8 * UNIT
    arena.set_fence(10 * UNIT)
    arena.free(low)
    assert arena.holes() == [(0, 10 * UNIT)]


def test_a_fence_beyond_the_arena_is_refused_with_the_reason():
    arena = small(10)
    before = arena.state()
    with pytest.raises(PolicyError, match="at most"):
        arena.set_fence(11 * UNIT)
    assert arena.state() == before


def test_a_fence_at_the_guard_leaves_no_room():
    arena = small(10, guard_units=2)
    arena.set_fence(2 * UNIT)
    assert arena.holes() == []
    assert arena.largest_hole_bytes == 0


def test_a_copy_shares_nothing():
    arena = small(10)
    arena.allocate(UNIT, owner="a")
    other = arena.copy()
    other.allocate(UNIT, owner="b")
    assert arena.blocks() == [(0, UNIT)]
    assert other.owner(0) == "a"


def looks_per_pair(blocks: int) -> float:
    """Return how many looks two pairs of allocate and free take beside that many blocks."""
    arena = checkered(blocks)
    before, pairs = arena.looked_at, 200
    for serial in range(pairs):
        offset = 2 * (1 + counter_hash(serial) % (blocks - 1)) * UNIT
        arena.free(offset)  # with its two gaps, the only hole of three units
        arena.free(arena.allocate(3 * UNIT))
        arena.allocate_at(offset, UNIT)
    return (arena.looked_at - before) / pairs


def test_a_hundred_times_the_blocks_cost_at_most_three_times_the_looks():
    assert looks_per_pair(10_000) <= 3 * looks_per_pair(100)


def lease_looks(blocks: int) -> float:
    arena = checkered(blocks)
    before, pairs = arena.looked_at, 200
    for serial in range(pairs):
        arena.free(arena.allocate((1 + counter_hash(serial) % 90) * UNIT, end="high"))
    return (arena.looked_at - before) / pairs


def test_a_lease_from_the_high_end_costs_no_more_among_many_blocks():
    assert lease_looks(10_000) <= 3 * lease_looks(100)
