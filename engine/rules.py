"""Rules: the policy as the core reads it, in integers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from engine.units import MIB, NS_PER_S

Fill = Literal["eager", "patient"]
Precision = Literal["fp32", "bf16", "int8"]
PRECISIONS: tuple[Precision, ...] = ("fp32", "bf16", "int8")
"""From the full one down; each takes fewer bytes than the one before."""
EvictionName = Literal["lru", "cost_aware", "priority_lru"]
Rung = Literal["smaller_batch", "evict", "convert", "compact", "wait"]
RUNGS: tuple[Rung, ...] = ("smaller_batch", "evict", "convert", "compact", "wait")
"""The ways to make room, in the default order in which they are tried."""


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
    quota_bytes: int | None = None
    precisions: tuple[str, ...] = ("fp32",)


@dataclass(frozen=True, slots=True)
class PlacementWeights:
    """Weights of the terms of a device's score; see `PlacementPolicy`."""

    headroom: float
    fragmentation: float
    queue: float
    swap: float
    victim_class: float


@dataclass(frozen=True, slots=True)
class MemoryRules:
    """How room is made, in the core's units; see `MemoryPolicy`."""

    eviction: str = "cost_aware"
    ladder: tuple[str, ...] = RUNGS
    protect_idle_ns: int = 2 * NS_PER_S
    min_residence_ns: int = NS_PER_S // 50
    demand_window_ns: int = 60 * NS_PER_S
    load_overhead_ns: int = NS_PER_S // 20
    smallest_batch: float = 0.5
    move_bytes_per_s: int = 4096 * MIB
    preallocate: bool = False
    restore_share: float = 0.25


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
    reserve_bytes: Mapping[str, int] = field(default_factory=dict)
    nccl_bytes: Mapping[str, int] = field(default_factory=dict)
    memory: MemoryRules = MemoryRules()

    def rules(self, model: str) -> ModelRules:
        """Return the rules that hold for that model."""
        return self.models.get(model, self.default)

    def reserve_of(self, device: str, default_bytes: int) -> int:
        """Return what a device keeps back: what was set, else its default and NCCL's part."""
        wanted = self.reserve_bytes.get(device)
        if wanted is None:
            wanted = default_bytes + self.nccl_bytes.get(device, 0)
        return max(wanted, default_bytes)
