"""Staging: a few pinned chunks through which weights go to a card at full speed."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.devices.transfers import RING_CHUNK_BYTES, RING_SLOTS, cut_load


def make_event() -> torch.cuda.Event:
    """Return an event that was never recorded, so that nobody waits for it.

    A thread that waits for it sleeps: a spinning one would take a core from the callers.
    """
    return torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]  # it has no type


def make_stream(device: torch.device) -> torch.cuda.Stream:
    """Return a stream of the card that does not wait for any other."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]  # as above


class PinnedRing:
    """Copy from ordinary host memory by way of pinned chunks, taken in turn.

    Whole models are never pinned: pinned memory is rounded up to powers of
    two, cached for ever, and taken from everybody else on the machine.
    """

    def __init__(self, slots: int = RING_SLOTS) -> None:
        """Pin the chunks."""
        self._chunks = [
            torch.empty(RING_CHUNK_BYTES, dtype=torch.uint8, pin_memory=True)
            for _ in range(slots)
        ]
        self._copied = [make_event() for _ in range(slots)]

    def copy(self, block: Tensor, target: Tensor, *, stream: torch.cuda.Stream) -> None:
        """Queue the copy of a block on a stream; returns when its last piece is queued.

        Args:
            block: uint8 in host memory.
            target: uint8 of the same size on the card.
        """
        with torch.cuda.stream(stream):
            for piece in cut_load(block.nbytes, slots=len(self._chunks)):
                self._copied[piece.slot].synchronize()
                staged = self._chunks[piece.slot][: piece.end - piece.start]
                staged.copy_(block[piece.start : piece.end])
                target[piece.start : piece.end].copy_(staged, non_blocking=True)
                self._copied[piece.slot].record(stream)
