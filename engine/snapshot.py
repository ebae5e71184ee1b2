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
        host_bytes: Bytes of its packed weights on the host; 0 if there are none yet.
        is_on_disk: The host's budget has no room for them: they are a mapped file.
        sizes: Bytes of its packed weights by precision, as far as they are known.
        overshoots: Batches that needed more workspace than they were leased.
        measured_share: Share of their leases that batches needed lately; 0: not measured.
        demand: Batches lately, as they count for `cost_aware`; see `Demand`.
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
    is_on_disk: bool = False
    sizes: tuple[tuple[str, int], ...] = ()
    overshoots: int = 0
    measured_share: float = 0.0
    demand: float = 0.0


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
