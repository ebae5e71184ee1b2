"""Properties of eviction plans on arenas of any make-up, against a search of all windows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.memory.arena import Arena
from engine.memory.eviction import Candidate, plan_budget
from engine.memory.windows import plan_window

UNIT = 64
Made = tuple[Arena, list[Candidate]]
KINDS = st.sampled_from(["hole", "wall", "resident", "resident", "resident"])


@st.composite
def arenas(draw: st.DrawFn) -> Made:
    """Return an arena with its fence and its residents in an eviction order."""
    rows = draw(st.lists(st.tuples(KINDS, st.integers(1, 6)), min_size=1, max_size=14))
    arena = Arena(sum(units for _, units in rows) * UNIT, UNIT, guard_bytes=0)
    residents, offset = [], 0
    for serial, (kind, units) in enumerate(rows):
        size = units * UNIT
        if kind != "hole":
            arena.allocate_at(offset, size)
        if kind == "resident":
            residents.append(Candidate(f"m{serial}", size, offset, 0, False, serial))
        offset += size
    arena.set_fence(draw(st.integers(arena.size_bytes // 2, arena.size_bytes)))
    return arena, draw(st.permutations(residents))


def opened(arena: Arena, victims: list[Candidate]) -> int:
    """Return the largest hole of the arena without these residents."""
    without = arena.copy()
    for victim in victims:
        without.free(victim.offset)
    return without.largest_hole_bytes


@given(arenas(), st.integers(1, 20))
def test_a_window_is_the_cheapest_that_the_shortest_prefix_of_the_order_opens(
    made: Made, units: int
):
    arena, order = made
    size = units * UNIT
    window = plan_window(arena.holes(), order, size_bytes=size, fence_bytes=arena.fence_bytes)
    if opened(arena, order) < size:
        assert window is None
        return
    assert window is not None
    by_model = {c.model: c for c in order}
    victims = [by_model[model] for model in window.victims]
    # Contiguous, inside and large enough: it can be had once the victims are gone.
    after = arena.copy()
    for victim in victims:
        assert window.start <= victim.offset < window.end
        after.free(victim.offset)
    after.allocate_at(window.start, window.end - window.start)
    assert window.end - window.start >= size
    assert window.end <= arena.fence_bytes
    # Only the shortest prefix that is enough, and in its order.
    prefix = next(n for n in range(len(order) + 1) if opened(arena, order[:n]) >= size)
    assert [c for c in order[:prefix] if c in victims] == victims
    assert sum(c.size_bytes for c in victims) == cheapest(arena, order[:prefix], size)


def cheapest(arena: Arena, allowed: list[Candidate], size: int) -> int:
    """Return the fewest bytes to evict for a window, by trying every start."""
    inside = {c.offset: c for c in allowed}
    prices = []
    for start in range(0, arena.fence_bytes, UNIT):
        end = start + size
        touched = [
            (offset, length)
            for offset, length in arena.blocks()
            if offset < end and start < offset + length
        ]
        if end <= arena.fence_bytes and all(offset in inside for offset, _ in touched):
            prices.append(sum(length for _, length in touched))
    return min(prices)


@given(arenas(), st.integers(-2, 60))
def test_a_budget_is_met_by_victims_none_of_whom_could_be_spared(made: Made, units: int):
    _, order = made
    needed = units * UNIT
    plan = plan_budget(order, needed)
    if plan is None:
        assert sum(c.size_bytes for c in order) < needed
        return
    sizes = [c.size_bytes for c in order if c.model in plan]
    assert [c.model for c in order if c.model in plan] == list(plan)
    assert sum(sizes) >= needed
    assert all(sum(sizes) - size < needed for size in sizes)
