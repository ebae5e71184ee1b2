"""Eviction: whose weights go so that a block, or bytes without an address, can be had."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Candidate:
    """Show a resident that may be evicted.

    Attributes:
        size_bytes: Size of its block.
        has_queue: Requests wait for its model; it would have to come back soon.
        serial: Breaks ties; no two residents share one.
    """

    model: str
    size_bytes: int
    offset: int
    last_used_ns: int
    has_queue: bool
    serial: int


@dataclass(frozen=True, slots=True)
class Window:
    """Show a range that can be had, and whose residents have to leave it.

    The victims' blocks lie in the range; one at the fence may reach beyond it.

    Attributes:
        start: Offset of its first byte.
        end: Offset behind its last byte.
        victims: Models, in eviction order; none: the range is free now.
    """

    start: int
    end: int
    victims: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Piece:
    """Hold a hole, or a victim's block as far as it lies below the fence."""

    start: int
    end: int
    price_bytes: int = 0
    rank: int = 0
    model: str = ""


def lru(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the candidates in eviction order.

    Those for which nobody waits go first, then the least recently used.
    """
    return sorted(candidates, key=lambda c: (c.has_queue, c.last_used_ns, c.serial))


def plan_budget(candidates: Sequence[Candidate], needed_bytes: int) -> tuple[str, ...] | None:
    """Return whom to evict for a number of bytes, wherever they lie.

    In order until the bytes are enough; then, from the last one back, those
    are spared without whom they are enough still.

    Args:
        candidates: In eviction order.

    Returns:
        Models in eviction order; none if nothing is needed. None: all
        candidates together do not have the bytes.
    """
    victims: list[Candidate] = []
    won = 0
    for candidate in candidates:
        if won >= needed_bytes:
            break
        victims.append(candidate)
        won += candidate.size_bytes
    if won < needed_bytes:
        return None
    needed: list[str] = []
    for victim in reversed(victims):
        if won - victim.size_bytes >= needed_bytes:
            won -= victim.size_bytes
        else:
            needed.append(victim.model)
    return tuple(reversed(needed))


def plan_window(
    holes: Iterable[tuple[int, int]],
    candidates: Sequence[Candidate],
    *,
    size_bytes: int,
    fence_bytes: int | None = None,
) -> Window | None:
    """Return the range of a wanted size that the fewest and oldest evictions open.

    Candidates are added in order until they open a run of neighbouring holes
    and victims that is large enough; inside it the part is taken for which
    the fewest bytes are evicted. So the order decides how recent a victim may
    be, and nobody is evicted who does not help. What is neither a hole nor a
    candidate's block is a wall. O(n log n).

    Args:
        holes: (offset, size) of every hole.
        candidates: In eviction order.
        size_bytes: More than 0.
        fence_bytes: Fence that the range may not cross; None: there is none.

    Returns:
        The range, as small as its holes allow. None: even without any of the
        candidates there is no room.
    """
    assert size_bytes > 0, f"a block has a size, not {size_bytes}"
    pieces = {start: _Piece(start, start + size) for start, size in holes}
    fitting = [p for p in pieces.values() if p.end - p.start >= size_bytes]
    if fitting:
        best = min(fitting, key=lambda p: (p.end - p.start, p.start))
        return Window(best.start, best.start + size_bytes)
    run = _first_run(pieces, candidates, size_bytes=size_bytes, fence_bytes=fence_bytes)
    if run is None:
        return None
    inside = sorted(
        (p for p in pieces.values() if run[0] <= p.start < run[1]), key=lambda p: p.start
    )
    return _window(_cheapest(inside, size_bytes), size_bytes)


def _first_run(
    pieces: dict[int, _Piece],
    candidates: Sequence[Candidate],
    *,
    size_bytes: int,
    fence_bytes: int | None,
) -> tuple[int, int] | None:
    """Add victims to the pieces, in order, until a run of them is large enough.

    Returns:
        Start and end of the run; None if there are not enough candidates.
    """
    ends = {piece.start: piece.end for piece in pieces.values()}
    starts = {piece.end: piece.start for piece in pieces.values()}
    for rank, victim in enumerate(candidates):
        start, end = victim.offset, victim.offset + victim.size_bytes
        if fence_bytes is not None:
            end = min(end, fence_bytes)
        if start >= end:
            continue
        pieces[start] = _Piece(start, end, victim.size_bytes, rank, victim.model)
        # Only the ends of a run are looked up, so only they are kept right.
        end = ends.pop(end, end)
        start = starts.pop(start, start)
        ends[start], starts[end] = end, start
        if end - start >= size_bytes:
            return start, end
    return None


def _cheapest(run: Sequence[_Piece], size_bytes: int) -> Sequence[_Piece]:
    """Return the part of a run that is large enough and evicts the fewest bytes.

    For every last piece the shortest part that is large enough is the
    cheapest; the first of equals is kept, which is the lowest.
    """
    first = price = 0
    best: tuple[int, Sequence[_Piece]] | None = None
    for last, piece in enumerate(run):
        price += piece.price_bytes
        while piece.end - run[first].end >= size_bytes:
            price -= run[first].price_bytes
            first += 1
        enough = piece.end - run[first].start >= size_bytes
        if enough and (best is None or price < best[0]):
            best = price, run[first : last + 1]
    assert best is not None, "the whole run is large enough"
    return best[1]


def _window(part: Sequence[_Piece], size_bytes: int) -> Window:
    """Return the part as a window, without the bytes of its outer holes that are too many.

    A victim's block stays whole: its bytes are held until it is gone.
    """
    start, end = part[0].start, part[-1].end
    if not part[-1].model:
        end = max(part[-1].start, start + size_bytes)
    if not part[0].model:
        start = min(part[0].end, end - size_bytes)
    victims = sorted((p for p in part if p.model), key=lambda p: p.rank)
    return Window(start, end, tuple(p.model for p in victims))
