"""Watermarks: when a lane wants a batch, when a prepared batch leaves, and why."""

from __future__ import annotations

from engine.batching.lanes import Lane
from engine.decisions import Reason


def wants_batch(lane: Lane, now_ns: int, *, load_ns: int = 0) -> bool:
    """Return whether a batch should be prepared for what no batch has claimed yet.

    At the low watermark, or when the oldest request has waited its timeout
    less the time that a load will take.

    Args:
        load_ns: Expected time of the load that is needed first; 0: none is.
    """
    if lane.retries:
        return True
    unclaimed = lane.queued_items - lane.claimed_items
    if unclaimed <= 0:
        return False
    marks = lane.rules.watermarks
    if unclaimed >= marks.low:
        return True
    return lane.claimed_items == 0 and is_due(lane, now_ns + load_ns)


def is_due(lane: Lane, now_ns: int) -> bool:
    """Return whether the oldest request has waited its timeout since its arrival."""
    oldest = lane.oldest_ns()
    return oldest is not None and now_ns - oldest >= lane.rules.watermarks.timeout_ns


def due_ns(lane: Lane, load_ns: int = 0) -> int | None:
    """Return when the lane will be due, early enough for a load; None when it is empty."""
    oldest = lane.oldest_ns()
    return None if oldest is None else oldest + lane.rules.watermarks.timeout_ns - load_ns


def leave_reason(
    lane: Lane, capacity: int, *, now_ns: int, deadline_ns: int | None
) -> Reason | None:
    """Return why a prepared batch leaves now that its device is free; None: it stays.

    `eager` never stays. `patient` waits until the batch is as large as it may
    get, its oldest request is due, or a deadline leaves no time to wait.

    Args:
        capacity: Most items that the batch may take.
        deadline_ns: Last instant at which it can start and meet its earliest deadline.
    """
    marks = lane.rules.watermarks
    if lane.queued_items >= min(capacity, marks.high):
        return Reason.FULL
    if is_due(lane, now_ns):
        return Reason.TIMEOUT
    if deadline_ns is not None and now_ns >= deadline_ns:
        return Reason.DEADLINE
    return Reason.LOW_WATERMARK if marks.fill == "eager" else None
