"""Tests of the miss-ratio curve and the advice made of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.memory.working_set import Access, advise, miss_curve

SIZES = {"a": 5, "b": 3, "c": 8, "d": 1}
S = 1_000_000_000


def uses(text: str) -> list[Access]:
    return [Access(n * S, model) for n, model in enumerate(text)]


def naive(accesses: list[Access], capacity: int) -> int:
    """Count the loads of an LRU pool that may hold a model larger than itself for its use."""
    held: list[str] = []
    seen: set[str] = set()
    loads = 0
    for _, model in accesses:
        loads += model not in held and model in seen
        seen.add(model)
        held = [model, *(name for name in held if name != model)]
        total, kept = 0, []
        for name in held:
            total += SIZES[name]
            if total > capacity:
                break
            kept.append(name)
        held = kept
    return loads


@given(st.lists(st.sampled_from("abcd"), max_size=40), st.integers(1, 20))
def test_the_curve_equals_a_simulated_pool_at_every_size(models: list[str], capacity: int):
    accesses = uses("".join(models))
    (point,) = miss_curve(accesses, SIZES, capacities=[capacity])
    assert point.loads == naive(accesses, capacity)


def test_loads_are_given_per_minute_of_the_window():
    (point,) = miss_curve(uses("ababab" * 11)[:61], SIZES, capacities=[5])
    assert (point.loads, point.loads_per_minute) == (59, 59.0)
    assert point.loaded_bytes == 30 * 5 + 29 * 3


def test_more_memory_that_ends_the_thrashing_is_said_to():
    found = advise(uses("abababababab"), SIZES, now_bytes=5, extra_bytes=3)
    assert found is not None
    assert found.now_per_minute > 50
    assert found.then_per_minute == 0
    assert found.spare_bytes == 0


def test_memory_that_nobody_needs_is_said_to_be_spare():
    found = advise(uses("abababab"), SIZES, now_bytes=20, extra_bytes=10)
    assert found is not None
    assert (found.now_per_minute, found.spare_bytes) == (0, 12)


def test_models_that_were_used_once_say_nothing():
    assert advise(uses("abcd"), SIZES, now_bytes=5, extra_bytes=3) is None
    assert miss_curve([], SIZES, capacities=[5])[0].loads == 0
