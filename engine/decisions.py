"""Decisions: every choice that the core makes, with its reason and its numbers."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

Number = int | float | str


class Kind(StrEnum):
    """Say what was decided."""

    BATCH = "batch"
    PLACEMENT = "placement"
    LOAD = "load"
    EVICT = "evict"
    ROOM = "room"
    MOVE = "move"
    CONVERT = "convert"
    REFUSE = "refuse"
    EXPIRE = "expire"
    RETRY = "retry"
    POLICY = "policy"
    OPERATOR = "operator"
    DEVICE = "device"
    PROFILE = "profile"


class Reason(StrEnum):
    """Say why; each belongs to one kind or a few of them."""

    # why a batch left
    FULL = "full"
    LOW_WATERMARK = "low_watermark"
    TIMEOUT = "timeout"
    DEADLINE = "deadline"
    # what bound the size of a batch
    HIGH = "high"
    MEMORY_CAP = "memory_cap"
    MAX_BATCH_MS = "max_batch_ms"
    MARGINAL_GAIN = "marginal_gain"
    QUEUE = "queue"
    # placements and room-making
    ONLY_CANDIDATE = "only_candidate"
    BEST_SCORE = "best_score"
    IN_TURN = "in_turn"
    LEAST_QUEUED = "least_queued"
    WAIT_FOR_HOLDER = "wait_for_holder"
    NO_ROOM = "no_room"
    NO_HOLE = "no_hole"
    SMALLER_BATCH = "smaller_batch"
    PREEMPTED = "preempted"
    LRU = "lru"
    COST_AWARE = "cost_aware"
    PRIORITY_LRU = "priority_lru"
    EVICT = "evict"
    CONVERT = "convert"
    COMPACT = "compact"
    WAIT = "wait"
    QUOTA = "quota"
    RESTORED = "restored"
    PLACEMENT_FAILED = "placement_failed"
    # refusals
    QUEUE_ITEMS = "queue_items"
    QUEUE_BYTES = "queue_bytes"
    CANNOT_FIT = "cannot_fit"
    TOO_MANY_ITEMS = "too_many_items"
    UNKNOWN_MODEL = "unknown_model"
    MODEL_FAILED = "model_failed"
    PAUSED = "paused"
    CLOSING = "closing"
    # failures and events from outside
    HALVED = "halved"
    OUT_OF_MEMORY = "out_of_memory"
    DEVICE_LOST = "device_lost"
    ERROR = "error"
    APPLIED = "applied"
    COMMAND = "command"
    ADDED = "added"
    MEASURED = "measured"


STORED_ALWAYS = frozenset(Kind) - {Kind.BATCH, Kind.PLACEMENT, Kind.EXPIRE}


class Decision(NamedTuple):
    """Record one choice of the core; it is an effect itself: the driver keeps it.

    A tuple, because one is made for every batch.

    Attributes:
        serial: Counts the core's decisions from 0.
        subject: Id of the batch, request, load or eviction it is about; None if none.
        numbers: Named figures that explain it, in the order in which they should be read.
    """

    serial: int
    at_ns: int
    kind: Kind
    reason: Reason
    model: str = ""
    device: str = ""
    subject: int | None = None
    numbers: tuple[tuple[str, Number], ...] = ()

    def line(self) -> str:
        """Return it as one line of text, the same for the same decision in every process."""
        numbers = " ".join(f"{name}={value}" for name, value in self.numbers)
        subject = "-" if self.subject is None else self.subject
        return (
            f"{self.serial} {self.at_ns} {self.kind} {self.reason} "
            f"{self.model or '-'} {self.device or '-'} {subject} {numbers}"
        ).rstrip()
