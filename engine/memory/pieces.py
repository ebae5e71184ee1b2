"""Pieces: an arena as holes and candidates between walls, and the cheapest part of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from engine.memory.eviction import Candidate


@dataclass(frozen=True, slots=True)
class Piece:
    """Hold a hole, or a candidate's block as far as it lies below the fence.

    Attributes:
        cost: Of opening it: bytes or expected nanoseconds; None: it cannot be passed.
        gain_bytes: What it adds to the hole that is wanted.
    """

    start: int
    end: int
    cost: float | None = 0.0
    rank: int = 0
    owner: Candidate | None = None
    gain_bytes: int = 0

    @property
    def model(self) -> str:
        """Return whose block it is; "" for a hole."""
        return self.owner.model if self.owner else ""


def hole(start: int, end: int) -> Piece:
    """Return the piece of a hole."""
    return Piece(start, end, gain_bytes=end - start)


def all_pieces(
    holes: Iterable[tuple[int, int]],
    candidates: Sequence[Candidate],
    *,
    fence_bytes: int | None,
) -> list[Piece]:
    """Return holes and candidates; one that reaches beyond the fence is a wall."""
    pieces = [hole(start, start + size) for start, size in holes]
    for rank, owner in enumerate(candidates):
        end = owner.offset + owner.size_bytes
        if fence_bytes is None or end <= fence_bytes:
            pieces.append(Piece(owner.offset, end, rank=rank, owner=owner))
    return pieces


def runs(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Yield the pieces in address order, a new list after every wall."""
    run: list[Piece] = []
    for piece in sorted(pieces, key=lambda p: p.start):
        if run and run[-1].end != piece.start:
            yield run
            run = []
        run.append(piece)
    if run:
        yield run


def cheapest(run: Sequence[Piece], size_bytes: int) -> Sequence[Piece] | None:
    """Return the part of a run that has enough bytes to win and costs least.

    For every last piece the shortest part that is large enough is the
    cheapest; the first of equals is kept, which is the lowest. What cannot be
    passed starts a new part.
    """
    first, won, cost = 0, 0, 0.0
    best: tuple[float, int, int] | None = None
    for last, piece in enumerate(run):
        if piece.cost is None:
            first, won, cost = last + 1, 0, 0.0
            continue
        won += piece.gain_bytes
        cost += piece.cost
        while first <= last and won - run[first].gain_bytes >= size_bytes:
            won -= run[first].gain_bytes
            cost -= run[first].cost or 0.0
            first += 1
        if won >= size_bytes and (best is None or cost < best[0]):
            best = cost, first, last
    return None if best is None else run[best[1] : best[2] + 1]
