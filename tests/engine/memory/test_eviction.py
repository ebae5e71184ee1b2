"""Tests of whom an eviction meets."""

from __future__ import annotations

from engine.memory.eviction import Candidate, lru, plan_budget
from engine.memory.windows import Window, plan_window


def resident(model: str, offset: int, size: int, *, used: int = 0) -> Candidate:
    return Candidate(model, size, offset, used, has_queue=False, serial=offset)


def test_nobody_waiting_comes_first_then_the_least_recently_used_then_the_serial():
    rows = [
        Candidate("waited_for", 1, 0, last_used_ns=1, has_queue=True, serial=1),
        Candidate("young", 1, 1, last_used_ns=9, has_queue=False, serial=2),
        Candidate("second", 1, 2, last_used_ns=5, has_queue=False, serial=4),
        Candidate("first", 1, 3, last_used_ns=5, has_queue=False, serial=3),
    ]
    assert [c.model for c in lru(rows)] == ["first", "second", "young", "waited_for"]


def test_a_budget_takes_the_oldest_until_it_is_enough():
    order = [resident("a", 0, 10), resident("b", 10, 10), resident("c", 20, 10)]
    assert plan_budget(order, 15) == ("a", "b")
    assert plan_budget(order, 30) == ("a", "b", "c")
    assert plan_budget(order, 0) == ()
    assert plan_budget(order, 31) is None


def test_a_budget_spares_whom_it_does_not_need_after_all():
    order = [resident("small", 0, 10), resident("large", 10, 100)]
    assert plan_budget(order, 50) == ("large",)


def test_a_hole_that_is_large_enough_costs_nobody():
    window = plan_window([(0, 9), (20, 6)], [resident("a", 10, 5)], size_bytes=5)
    assert window == Window(20, 25)


def test_a_victim_between_two_holes_opens_a_window_no_larger_than_wanted():
    window = plan_window([(0, 5), (15, 5)], [resident("a", 5, 10)], size_bytes=16)
    assert window == Window(0, 16, ("a",))


def test_a_victim_leaves_as_a_whole_even_if_less_were_enough():
    assert plan_window([], [resident("a", 8, 10)], size_bytes=3) == Window(8, 18, ("a",))


def test_a_victim_that_does_not_help_stays():
    order = [resident("far", 100, 10), resident("near", 10, 10)]
    assert plan_window([(20, 5)], order, size_bytes=15) == Window(10, 25, ("near",))


def test_an_older_and_larger_victim_goes_before_two_younger_ones():
    order = [resident("large", 0, 50), resident("small", 60, 10), resident("last", 50, 10)]
    assert plan_window([], order, size_bytes=20) == Window(0, 50, ("large",))


def test_a_run_that_the_last_victim_closes_is_cut_to_its_cheapest_part():
    order = [resident("left", 0, 9), resident("right", 19, 4), resident("mid", 9, 10)]
    assert plan_window([], order, size_bytes=14) == Window(9, 23, ("right", "mid"))


def test_a_block_that_is_nobodys_to_evict_is_a_wall():
    order = [resident("a", 0, 10), resident("b", 20, 10)]
    assert plan_window([], order, size_bytes=11) is None


def test_a_window_does_not_cross_the_fence():
    order = [resident("a", 0, 10), resident("b", 10, 10)]
    assert plan_window([], order, size_bytes=15, fence_bytes=14) is None
    assert plan_window([], order, size_bytes=12, fence_bytes=14) == Window(0, 14, ("a", "b"))
