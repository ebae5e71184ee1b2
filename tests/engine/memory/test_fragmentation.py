"""Tests of the fragmentation figures, the edges above all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.memory.fragmentation import external, internal, unusable

HOLES = st.lists(st.integers(1, 1000), min_size=1, max_size=20)


def test_external_is_what_lies_outside_the_largest_hole():
    assert external(100, 25) == 0.75
    assert external(100, 100) == 0


def test_external_is_zero_when_nothing_is_free():
    assert external(0, 0) == 0
    assert external(-5, 10) == 0


def test_external_is_zero_when_a_budget_leaves_less_than_the_largest_hole():
    assert external(10, 40) == 0


def test_unusable_is_what_is_left_when_the_holes_are_filled_with_blocks():
    assert unusable([10, 7, 3], 5) == pytest.approx((0 + 2 + 3) / 20)


def test_unusable_is_one_when_nothing_is_free_or_no_block_fits():
    assert unusable([], 5) == 1
    assert unusable([4, 4, 4], 5) == 1


def test_internal_is_what_was_granted_and_is_not_needed():
    assert internal(100, 60) == pytest.approx(0.4)


def test_internal_is_zero_for_an_overshot_lease_and_for_none():
    assert internal(100, 130) == 0
    assert internal(0, 0) == 0


@given(HOLES)
def test_external_is_a_share(holes: list[int]):
    assert 0 <= external(sum(holes), max(holes)) < 1


@given(HOLES, st.integers(1, 500))
def test_unusable_follows_the_formula_of_the_design(holes: list[int], size: int):
    free = sum(holes)
    assert unusable(holes, size) == pytest.approx(
        (free - sum(hole // size * size for hole in holes)) / free
    )
