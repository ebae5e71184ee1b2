"""Eviction: which idle residents go first, and which of them open the wanted room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Candidate:
    """Describe a resident that may be evicted.

    Attributes:
        has_queue: Requests wait for it, less urgent ones than those it would go for.
        serial: Breaks ties; the older load first.
    """

    model: str
    size_bytes: int
    offset: int
    last_used_ns: int
    has_queue: bool
    serial: int


@dataclass(frozen=True, slots=True)
class Window:
    """Name a range of bytes and the residents that must leave to make it one hole."""

    start: int
    end: int
    victims: tuple[str, ...]


def lru(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates in the order of eviction: nobody waits for it, longest unused."""
    return sorted(candidates, key=lambda c: (c.has_queue, c.last_used_ns, c.serial))


def plan_window(
    holes: Sequence[tuple[int, int]], order: Sequence[Candidate], size_bytes: int
) -> Window | None:
    """Return the range that evicting in this order opens first, at the lowest price.

    Candidates are given up one after another until some run of neighbouring
    holes and victims is large enough. Victims that the run does not need are
    spared, and of all ways to place the block in the run the one that evicts
    the fewest bytes is taken, the lowest address among equals.

    Args:
        holes: (offset, size), in address order.
        order: Who goes first.
        size_bytes: Wanted in one piece.

    Returns:
        The window; None when all candidates together do not open it.
    """
    starts = {offset: offset + size for offset, size in holes}
    ends = {end: offset for offset, end in starts.items()}
    gone: dict[int, Candidate] = {}
    for candidate in order:
        start, end = candidate.offset, candidate.offset + candidate.size_bytes
        gone[start] = candidate
        if start in ends:
            left = ends.pop(start)
            del starts[left]
            start = left
        if end in starts:
            right = starts.pop(end)
            del ends[right]
            end = right
        starts[start], ends[end] = end, start
        if end - start >= size_bytes:
            return _cheapest(start, end, gone, size_bytes)
    return None


def _cheapest(start: int, end: int, gone: dict[int, Candidate], size_bytes: int) -> Window:
    """Slide over the run: a window begins or ends at its ends or beside a victim."""
    inside = sorted((c for o, c in gone.items() if start <= o < end), key=lambda c: c.offset)
    begins = {start, end - size_bytes}
    for victim in inside:
        begins.add(victim.offset + victim.size_bytes)
        begins.add(victim.offset - size_bytes)
    best: tuple[int, int] | None = None
    for begin in begins:
        if begin < start or begin + size_bytes > end:
            continue
        price = sum(c.size_bytes for c in _touched(inside, begin, begin + size_bytes))
        if best is None or (price, begin) < best:
            best = price, begin
    assert best is not None, "the run is large enough"
    begin, stop = best[1], best[1] + size_bytes
    victims = _touched(inside, begin, stop)
    first = min([begin, *(c.offset for c in victims)])
    last = max([stop, *(c.offset + c.size_bytes for c in victims)])
    return Window(first, last, tuple(c.model for c in victims))


def _touched(inside: Sequence[Candidate], begin: int, end: int) -> list[Candidate]:
    return [c for c in inside if c.offset < end and c.offset + c.size_bytes > begin]


def plan_budget(order: Sequence[Candidate], needed_bytes: int) -> tuple[str, ...] | None:
    """Return who must leave, in this order, to win so many bytes wherever they lie.

    A later victim that is large enough alone spares the earlier ones.

    Returns:
        Models; None when all candidates together are not enough.
    """
    victims: list[Candidate] = []
    won = 0
    for candidate in order:
        if won >= needed_bytes:
            break
        victims.append(candidate)
        won += candidate.size_bytes
    if won < needed_bytes:
        return None
    for candidate in list(victims):
        if won - candidate.size_bytes >= needed_bytes:
            victims.remove(candidate)
            won -= candidate.size_bytes
    return tuple(c.model for c in victims)
