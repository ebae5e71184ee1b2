"""Admission: which submissions are refused at once, and which limit bound."""

from __future__ import annotations

from dataclasses import dataclass

from engine.decisions import Reason
from engine.request import Request
from engine.rules import CompiledPolicy


@dataclass(frozen=True, slots=True)
class Refusal:
    """Say which limit refused a request, what was wanted and what there was room for."""

    reason: Reason
    limit: str
    wanted: int
    found: int


def refusal(
    request: Request, policy: CompiledPolicy, *, queued_items: int, queued_bytes: int
) -> Refusal | None:
    """Return why a request may not wait; None: it may.

    Args:
        queued_items: Items of its model that wait already.
        queued_bytes: Bytes of all payloads that wait already.
    """
    if queued_items + request.items > policy.queue_items:
        room = policy.queue_items - queued_items
        return Refusal(Reason.QUEUE_ITEMS, "admission.queue_items", request.items, room)
    if queued_bytes + request.size_bytes > policy.queue_bytes:
        room = policy.queue_bytes - queued_bytes
        return Refusal(Reason.QUEUE_BYTES, "admission.queue_mib", request.size_bytes, room)
    return None
