"""Properties of compaction plans, against a search of all ranges of small arenas."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.memory.arena import Arena
from engine.memory.compaction import Budget, largest_openable, plan_compaction
from engine.memory.eviction import Candidate

UNIT = 64
KINDS = st.sampled_from(["hole", "hole", "wall", "fixed", "stays", "leaves", "leaves"])
FREE_MOVES = Budget(0.0, 1 << 40)
Made = tuple[Arena, list[Candidate]]


@st.composite
def arenas(draw: st.DrawFn, kinds: st.SearchStrategy[str] = KINDS) -> Made:
    """Return an arena and its residents: some may leave, some may move, some neither."""
    rows = draw(st.lists(st.tuples(kinds, st.integers(1, 6)), min_size=1, max_size=12))
    arena = Arena(sum(units for _, units in rows) * UNIT, UNIT, guard_bytes=0)
    residents, offset = [], 0
    for serial, (kind, units) in enumerate(rows):
        size = units * UNIT
        if kind != "hole":
            arena.allocate_at(offset, size)
        if kind in ("fixed", "stays", "leaves"):
            price = draw(st.integers(0, 1000))
            residents.append(
                Candidate(
                    f"m{serial}",
                    size,
                    offset,
                    0,
                    False,
                    serial,
                    price_ns=price,
                    may_leave=kind == "leaves",
                    may_move=kind in ("stays", "leaves"),
                )
            )
        offset += size
    return arena, residents


@given(arenas(), st.integers(1, 20))
def test_a_plan_can_be_carried_out_step_by_step_and_opens_the_hole(made: Made, units: int):
    arena, order = made
    by_model = {c.model: c for c in order}
    plan = plan_compaction(arena.holes(), order, size_bytes=units * UNIT, budget=FREE_MOVES)
    if plan is None:
        assert arena.largest_hole_bytes < units * UNIT
        return
    after = arena.copy()
    for victim in plan.victims:
        assert by_model[victim].may_leave
        after.free(by_model[victim].offset)
    for move in plan.moves:
        mover = by_model[move.model]
        assert mover.may_move
        assert (mover.offset, mover.size_bytes) == (move.offset, move.size_bytes)
        assert plan.window is not None
        assert plan.window[0] <= move.new_offset < move.offset < plan.window[1]
        after.free(move.offset)
        after.allocate_at(move.new_offset, move.size_bytes)
    assert after.largest_hole_bytes >= units * UNIT


@given(arenas(st.sampled_from(["hole", "wall", "fixed", "stays"])), st.integers(1, 20))
def test_without_victims_the_fewest_bytes_are_moved(made: Made, units: int):
    arena, order = made
    size, budget = units * UNIT, Budget(1.0, 1 << 40)
    plan = plan_compaction(arena.holes(), order, size_bytes=size, budget=budget)
    fewest = fewest_moved(arena, order, size)
    if plan is None:
        assert fewest is None
        assert largest_openable(arena.holes(), order) < size
        return
    assert not plan.victims
    assert fewest is not None
    between = sum(
        c.size_bytes
        for c in order
        if plan.window is not None and plan.window[0] <= c.offset < plan.window[1]
    )
    assert plan.moved_bytes <= between
    assert between == fewest
    assert largest_openable(arena.holes(), order) >= size


def fewest_moved(arena: Arena, order: list[Candidate], size: int) -> int | None:
    """Return the fewest bytes that lie between holes of enough bytes, trying every range."""
    movable = {c.offset: c.size_bytes for c in order if c.may_move}
    holes = [(offset, size_bytes, True) for offset, size_bytes in arena.holes()]
    pieces = sorted(holes + [(*block, False) for block in arena.blocks()])
    found = []
    for first in range(len(pieces)):
        free = moved = 0
        for offset, length, is_hole in pieces[first:]:
            if is_hole:
                free += length
            elif offset in movable:
                moved += length
            else:
                break
            if free >= size:
                found.append(moved)
                break
    return min(found, default=None)


@given(arenas(), st.integers(1, 20), st.integers(0, 600))
def test_no_plan_moves_more_than_the_budget_allows(made: Made, units: int, left: int):
    arena, order = made
    budget = Budget(1.0, left)
    plan = plan_compaction(arena.holes(), order, size_bytes=units * UNIT, budget=budget)
    assert plan is None or plan.moved_bytes <= left
