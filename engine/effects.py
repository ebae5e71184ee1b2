"""Effects: what the core asks its driver to do; each that takes time ends in one event.

Those that come with every batch are tuples: a frozen dataclass takes far longer to make.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from engine.decisions import Decision, Reason
from engine.snapshot import Snapshot
from engine.spec import LaneKey

Part = tuple[int, int, int]
"""Items of a request that are in a batch: (request id, index of the first, how many)."""


class RunBatch(NamedTuple):
    """Run the parts as one batch on the device's worker; ends in batch finished or failed.

    Attributes:
        is_whole: No request in it is split.
    """

    batch_id: int
    device: str
    lane: LaneKey
    items: int
    parts: tuple[Part, ...]
    is_whole: bool
    lease_offset: int | None
    lease_bytes: int


class CallWorker(NamedTuple):
    """Ask a device's idle worker to say when it is at hand; ends in worker ready.

    A batch leaves when its worker takes it, not when it could: what arrives
    while the worker wakes up still joins.
    """

    device: str


@dataclass(frozen=True, slots=True)
class LoadWeights:
    """Copy a model's packed weights to `offset` of the device's arena, on its loader."""

    load_id: int
    device: str
    model: str
    precision: str
    offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class EvictWeights:
    """Drop a model's weights from the device, on its loader; the host copy stays."""

    eviction_id: int
    device: str
    model: str
    offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class MoveWeights:
    """Move a model's weights inside the arena, on the device's worker."""

    move_id: int
    device: str
    model: str
    offset: int
    new_offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ConvertWeights:
    """Change the precision of a model's weights, on the device's worker.

    They end at `new_offset`: the same as `offset` when they become smaller,
    a block of their own when they become larger.
    """

    convert_id: int
    device: str
    model: str
    precision: str
    offset: int
    new_offset: int
    new_size_bytes: int


class ResolveRequests(NamedTuple):
    """Hand out the results of these requests and forget their payloads."""

    request_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RejectRequests:
    """Fail these requests with that reason and forget their payloads.

    Attributes:
        reason: Cancelled and expired requests have their own reasons.
        limit: Name of the limit that bound, for refusals.
        retry_after_ns: When a refused request may fit; 0 when waiting does not help.
    """

    request_ids: tuple[int, ...]
    outcome: str
    reason: Reason
    message: str
    limit: str = ""
    wanted: int = 0
    found: int = 0
    retry_after_ns: int = 0


class WakeAt(NamedTuple):
    """Send a time-passed event at that instant; a later WakeAt replaces it."""

    at_ns: int


@dataclass(frozen=True, slots=True)
class PublishSnapshot:
    """Make this the snapshot that everyone else reads."""

    snapshot: Snapshot


Effect = (
    RunBatch
    | CallWorker
    | LoadWeights
    | EvictWeights
    | MoveWeights
    | ConvertWeights
    | ResolveRequests
    | RejectRequests
    | WakeAt
    | PublishSnapshot
    | Decision
)
