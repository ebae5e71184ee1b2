"""Snapshot: the frozen, complete view of the engine that is published to everyone else."""

from __future__ import annotations

from dataclasses import dataclass

from engine.decisions import Kind, Reason
from engine.memory.state import MemoryState
from engine.metrics import Counters, LatencyHistogram
from engine.spec import LaneKey


@dataclass(frozen=True, slots=True)
class LaneState:
    """Show one lane's queue.

    Attributes:
        oldest_ns: When its oldest request arrived; 0 when it is empty.
        effective_class: Of its most urgent request; its model's class when it is empty.
    """

    key: LaneKey
    queued_items: int
    queued_requests: int
    oldest_ns: int
    effective_class: int


@dataclass(frozen=True, slots=True)
class ModelState:
    """Show one model: what it did since the start.

    Counters and histograms only ever grow; whoever wants a second's worth
    subtracts two snapshots. They are copies: nobody else writes to them.

    Attributes:
        latency: From arrival to the end of its batch, of completed requests.
        queueing: From arrival to the start of its batch.
        service: Of batches on the device.
        safe_items: Largest batch that fits on an empty device, by device.
        host_bytes: Bytes of its host copy; 0 if it has none yet.
    """

    name: str
    counters: Counters
    latency: LatencyHistogram
    queueing: LatencyHistogram
    service: LatencyHistogram
    queued_items: int
    running_items: int
    resident_on: tuple[str, ...]
    loading_on: tuple[str, ...]
    weight_bytes: int
    host_bytes: int
    safe_items: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Show the whole engine at one instant of its own clock."""

    serial: int
    at_ns: int
    policy_version: int
    is_paused: bool
    memory: MemoryState
    lanes: tuple[LaneState, ...]
    models: tuple[ModelState, ...]
    decision_counts: tuple[tuple[Kind, Reason, int], ...]
    no_hole_events: int

    def model(self, name: str) -> ModelState:
        """Return the model of that name.

        Raises:
            KeyError: There is none.
        """
        for model in self.models:
            if model.name == name:
                return model
        raise KeyError(name)
