"""Compaction: open a hole by moving residents together, with evictions or without."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from engine.memory.eviction import Candidate, choose
from engine.memory.holdings import Move, Plan
from engine.memory.pieces import Piece, all_pieces, cheapest, runs


@dataclass(frozen=True, slots=True)
class Budget:
    """Say what a move costs and how many bytes may be moved now."""

    move_ns_per_byte: float
    left_bytes: int


def plan_compaction(
    holes: Iterable[tuple[int, int]],
    candidates: Sequence[Candidate],
    *,
    size_bytes: int,
    budget: Budget,
    fence_bytes: int | None = None,
) -> Plan | None:
    """Return the cheapest window that opens when residents in it are moved together.

    Between two walls, first the fewest victims in eviction order whose bytes
    and the holes' are enough; then the range that has enough of them, with
    the fewest bytes in between to be moved to its low end. Never across what
    may not move. O(n log n).

    Args:
        candidates: In eviction order; those who may not leave may still move.
    """
    pieces = all_pieces(holes, candidates, fence_bytes=fence_bytes)
    plans = [_plan_run(run, size_bytes, budget=budget) for run in runs(pieces)]
    found = [plan for plan in plans if plan is not None]
    if not found:
        return None
    return min(found, key=lambda plan: (plan.price_ns, plan.window or (0, 0)))


def largest_openable(
    holes: Iterable[tuple[int, int]],
    candidates: Sequence[Candidate],
    *,
    fence_bytes: int | None = None,
) -> int:
    """Return the size of the largest hole that moves alone could open."""
    pieces = all_pieces(holes, candidates, fence_bytes=fence_bytes)
    best = 0
    for run in runs(pieces):
        won = 0
        for piece in run:
            is_wall = piece.owner is not None and not piece.owner.may_move
            won = 0 if is_wall else won + piece.gain_bytes
            best = max(best, won)
    return best


def _plan_run(run: Sequence[Piece], size_bytes: int, *, budget: Budget) -> Plan | None:
    owners = sorted((p for p in run if p.owner), key=lambda p: p.rank)
    free = sum(p.gain_bytes for p in run)
    leaving = [p.owner for p in owners if p.owner and p.owner.may_leave]
    victims = choose(leaving, size_bytes - free, is_priced=True)
    if victims is None:
        return None
    gone = {victim.model for victim in victims}
    part = cheapest([_sorted_out(p, gone, budget=budget) for p in run], size_bytes)
    if part is None:
        return None
    inside = {p.model for p in part}
    going = tuple(victim for victim in victims if victim.model in inside)
    moves = tuple(_moves(part, gone))
    moved_bytes = sum(move.size_bytes for move in moves)
    if moved_bytes > budget.left_bytes:
        return None
    price = sum(v.price_ns for v in going) + moved_bytes * budget.move_ns_per_byte
    kept = sum(p.end - p.start for p in part if p.model and p.model not in gone)
    end = part[-1].end
    if not part[-1].model:
        end = min(end, part[0].start + kept + size_bytes)
    return Plan(
        tuple(v.model for v in going), (part[0].start, end), moves, price_ns=round(price)
    )


def _sorted_out(piece: Piece, gone: set[str], *, budget: Budget) -> Piece:
    """Return a piece as what it is once it is decided who leaves."""
    owner, size = piece.owner, piece.end - piece.start
    if owner is None:
        return piece
    if owner.model in gone:
        return Piece(piece.start, piece.end, 0.0, piece.rank, owner, size)
    cost = size * budget.move_ns_per_byte if owner.may_move else None
    return Piece(piece.start, piece.end, cost, piece.rank, owner)


def _moves(part: Sequence[Piece], gone: set[str]) -> Iterator[Move]:
    """Yield the moves that bring all who stay to the range's low end, in a safe order."""
    at = part[0].start
    for piece in part:
        if not piece.model or piece.model in gone:
            continue
        size = piece.end - piece.start
        if piece.start != at:
            yield Move(piece.model, piece.start, at, size)
        at += size
