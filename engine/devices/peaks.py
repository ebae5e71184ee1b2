"""Peaks: the workspace that batches really need, measured on a few of them."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from engine.devices.dry_run import LiveBytes
from engine.spec import LaneKey

EVERY = 256


class Peaks:
    """Choose the batches to be measured, and keep the last one's figure.

    Measured is every batch that is larger than all before it in its lane, and
    then one of 256: counting storages costs a few microseconds per operator.

    Attributes:
        last_bytes: Workspace of the batch that ran last; 0: it was not measured.
    """

    def __init__(self) -> None:
        """Start with nothing measured."""
        self.last_bytes = 0
        self._counts: dict[LaneKey, int] = {}
        self._largest: dict[LaneKey, int] = {}

    def watch(self, lane: LaneKey, items: int, *, known: Sequence[Tensor]) -> LiveBytes | None:
        """Return what to run this batch under; None: it is not measured.

        Args:
            known: Tensors whose storage is no workspace: the arena.
        """
        self.last_bytes = 0
        count = self._counts[lane] = self._counts.get(lane, 0) + 1
        if items <= self._largest.get(lane, 0) and count % EVERY:
            return None
        self._largest[lane] = max(items, self._largest.get(lane, 0))
        return LiveBytes(known)
