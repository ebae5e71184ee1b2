"""Rules: the policy as the core reads it, in integers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Fill = Literal["eager", "patient"]


@dataclass(frozen=True, slots=True)
class Watermarks:
    """When a model's queue lets a batch go.

    Below `low` items wait for company until the oldest has waited `timeout_ns`;
    from `low` on a batch is prepared and leaves with the next free slot; at
    `high` it is as large as it may get.
    """

    low: int
    high: int
    timeout_ns: int
    fill: Fill


@dataclass(frozen=True, slots=True)
class ModelRules:
    """A model's policy in the core's units; `weight_milli` is 1000 for weight 1."""

    watermarks: Watermarks
    priority_class: int
    weight_milli: int
    slo_ns: int
    deadline_ns: int | None
    max_batch_ns: int | None
    pinned: bool


@dataclass(frozen=True, slots=True)
class PlacementWeights:
    """Weights of the terms of a device's score; see `PlacementPolicy`."""

    headroom: float
    fragmentation: float
    queue: float
    swap: float
    victim_class: float


@dataclass(frozen=True, slots=True)
class CompiledPolicy:
    """The policy as the core reads it: integers, with every model's rules at hand."""

    version: int
    default: ModelRules
    placement: str
    weights: PlacementWeights
    queue_items: int
    queue_bytes: int
    aging_ns: int
    pages_in_flight: int
    pages_waiting: int
    retry_batches: int
    models: Mapping[str, ModelRules] = field(default_factory=dict)
    pool_bytes: Mapping[str, int] = field(default_factory=dict)

    def rules(self, model: str) -> ModelRules:
        """Return the rules that hold for that model."""
        return self.models.get(model, self.default)
