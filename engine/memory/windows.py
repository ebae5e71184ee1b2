"""Windows: which range of an arena to open by evictions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from engine.memory.eviction import Candidate
from engine.memory.pieces import Piece, cheapest, hole, runs


@dataclass(frozen=True, slots=True)
class Window:
    """Show a range that can be had, and whose residents have to leave it.

    The victims' blocks lie in the range; one at the fence may reach beyond it.

    Attributes:
        start: Offset of its first byte.
        end: Offset behind its last byte.
        victims: Models, in eviction order; none: the range is free now.
        price_ns: Of the victims together.
    """

    start: int
    end: int
    victims: tuple[str, ...] = ()
    price_ns: float = 0.0


def plan_window(
    holes: Iterable[tuple[int, int]],
    candidates: Sequence[Candidate],
    *,
    size_bytes: int,
    fence_bytes: int | None = None,
    is_priced: bool = False,
) -> Window | None:
    """Return the range of a wanted size that evictions open best.

    By order: candidates are added in order until they open a run of
    neighbouring holes and victims that is large enough; inside it the part is
    taken for which the fewest bytes are evicted. So the order decides how
    recent a victim may be, and nobody is evicted who does not help. By price:
    of all runs the part whose victims are the cheapest together. What is
    neither a hole nor a candidate's block is a wall. O(n log n).

    Args:
        holes: (offset, size) of every hole.
        candidates: In eviction order, all of whom may leave.
        size_bytes: More than 0.
        fence_bytes: Fence that the range may not cross; None: there is none.

    Returns:
        The range, as small as its holes allow. None: even without any of the
        candidates there is no room.
    """
    assert size_bytes > 0, f"a block has a size, not {size_bytes}"
    free = [hole(start, start + size) for start, size in holes]
    fitting = [p for p in free if p.gain_bytes >= size_bytes]
    if fitting:
        best = min(fitting, key=lambda p: (p.gain_bytes, p.start))
        return Window(best.start, best.start + size_bytes)
    victims = list(_victims(candidates, fence_bytes, is_priced=is_priced))
    if is_priced:
        found = list(runs(free + victims))
    else:
        found = _first_run(free, victims, size_bytes=size_bytes)
    best_part = _best(found, size_bytes)
    return None if best_part is None else _window(best_part, size_bytes)


def _victims(
    candidates: Sequence[Candidate], fence_bytes: int | None, *, is_priced: bool
) -> Iterator[Piece]:
    for rank, owner in enumerate(candidates):
        start, end = owner.offset, owner.offset + owner.size_bytes
        if fence_bytes is not None:
            end = min(end, fence_bytes)
        cost = owner.price_ns if is_priced else owner.size_bytes
        if start < end:
            yield Piece(start, end, cost, rank, owner, end - start)


def _first_run(
    free: Sequence[Piece], victims: Sequence[Piece], *, size_bytes: int
) -> list[list[Piece]]:
    """Add victims to the holes, in order, until a run of them is large enough.

    Returns:
        That run; nothing if there are not enough candidates.
    """
    pieces = {piece.start: piece for piece in free}
    ends = {piece.start: piece.end for piece in free}
    starts = {piece.end: piece.start for piece in free}
    for victim in victims:
        pieces[victim.start] = victim
        # Only the ends of a run are looked up, so only they are kept right.
        end = ends.pop(victim.end, victim.end)
        start = starts.pop(victim.start, victim.start)
        ends[start], starts[end] = end, start
        if end - start >= size_bytes:
            inside = (p for p in pieces.values() if start <= p.start < end)
            return [sorted(inside, key=lambda p: p.start)]
    return []


def _best(runs: Iterable[Sequence[Piece]], size_bytes: int) -> Sequence[Piece] | None:
    parts = [part for run in runs if (part := cheapest(run, size_bytes)) is not None]
    return min(parts, key=_price, default=None)


def _price(part: Sequence[Piece]) -> tuple[float, int]:
    return sum(p.cost or 0.0 for p in part), part[0].start


def _window(part: Sequence[Piece], size_bytes: int) -> Window:
    """Return the part as a window, without the bytes of its outer holes that are too many.

    A victim's block stays whole: its bytes are held until it is gone.
    """
    start, end = part[0].start, part[-1].end
    if not part[-1].model:
        end = max(part[-1].start, start + size_bytes)
    if not part[0].model:
        start = min(part[0].end, end - size_bytes)
    victims = sorted((p for p in part if p.owner), key=lambda p: p.rank)
    price = sum(p.owner.price_ns for p in victims if p.owner)
    return Window(start, end, tuple(p.model for p in victims), price)
