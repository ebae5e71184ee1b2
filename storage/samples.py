"""Samples: the values that are stored and read back, without anything of the database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from engine.decisions import Decision

RunState = Literal["open", "finished", "interrupted", "failed"]
RunKind = Literal["load", "notebook", "manual"]


@dataclass(frozen=True, slots=True)
class DeviceSample:
    """Hold one second of one device; levels are those at its end.

    Attributes:
        at_ms: Epoch milliseconds, UTC, of its end.
        unusable: Share of the free bytes that the largest absent model cannot use.
        busy: Share of the second in which a batch ran.
        truth_bytes: What the device itself reports; 0: unknown.
    """

    at_ms: int
    device: str
    pool_bytes: int
    reserve_bytes: int
    resident_bytes: int
    lease_bytes: int
    free_bytes: int
    largest_hole_bytes: int
    external_fragmentation: float
    unusable: float
    internal_fragmentation: float
    busy: float
    running_items: int
    pending_loads: int
    truth_bytes: int

    @property
    def utilisation(self) -> float:
        """Return the held share of the pool, 0 to 1."""
        held = self.pool_bytes - self.free_bytes
        return held / self.pool_bytes if self.pool_bytes else 0.0


@dataclass(frozen=True, slots=True)
class ModelSample:
    """Hold one second of one model: counts over the second, levels at its end.

    Attributes:
        at_ms: Epoch milliseconds, UTC, of its end.
        good: Requests that met the model's SLO.
        latency: Histogram of the second, packed; of completed requests.
        queueing: The same of waits; `service` the same of batches.
    """

    at_ms: int
    model: str
    submitted: int
    completed: int
    failed: int
    refused: int
    expired: int
    cancelled: int
    items: int
    batches: int
    good: int
    loads: int
    evictions: int
    loaded_bytes: int
    queued_items: int
    residents: int
    latency: bytes
    queueing: bytes
    service: bytes


@dataclass(frozen=True, slots=True)
class PolicyRecord:
    """Hold one applied policy version.

    Attributes:
        document: The policy as JSON.
        diff: (field, before, after) against the version before it.
    """

    version: int
    at_ms: int
    author: str
    reason: str
    document: str
    diff: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class RunRecord:
    """Hold one recorded session; its series are those of the store between its ends.

    Attributes:
        load: The load plan as JSON; "" when there was none.
        summary: Figures by name, written when it ends.
    """

    id: int
    name: str
    kind: RunKind
    started_ms: int
    ended_ms: int | None
    state: RunState
    first_policy: int
    load: str
    hardware: str
    code_version: str
    summary: Mapping[str, float]
    author: str


@dataclass(frozen=True, slots=True)
class NewRun:
    """Describe a run that starts; see `RunRecord`."""

    name: str
    kind: RunKind
    started_ms: int
    first_policy: int
    author: str
    load: str = ""
    hardware: str = ""
    code_version: str = ""


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """Hold one stored decision with the wall time at which it was made."""

    at_ms: int
    decision: Decision
