"""Policy parts: what can be edited of models, devices, memory, placement, admission."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from engine.rules import (
    RUNGS,
    EvictionName,
    Fill,
    MemoryRules,
    ModelRules,
    Precision,
    Rung,
    Watermarks,
)
from engine.units import MIB, NS_PER_S, ms_to_ns

Milliseconds = Annotated[float, Field(ge=0, le=3_600_000, allow_inf_nan=False)]
Ratio = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Weight = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]
MOST_MIB = 1 << 30
"""A PiB: beyond what any device or host has, and within what integers of bytes are made of."""
Mebibytes = Annotated[float, Field(ge=4, le=MOST_MIB, allow_inf_nan=False)]
Allowance = Annotated[float, Field(ge=0, le=MOST_MIB, allow_inf_nan=False)]
Span = Annotated[float, Field(ge=0.001, le=3_600_000, allow_inf_nan=False)]
"""Milliseconds that are more than nothing: a microsecond to an hour."""
PLACEMENTS = ("round_robin", "least_loaded", "memory_aware")


class Part(BaseModel):
    """Share what all parts of the document have: frozen, and no unknown field."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ModelPolicy(Part):
    """Say how one model's requests are batched, how urgent they are, what is promised.

    Attributes:
        low: Queued items at which a batch is prepared.
        high: Queued items at which it must leave, and its largest size.
        timeout_ms: Longest wait of the oldest request before it goes in a smaller batch.
        fill: `eager` leaves when the device is free; `patient` when full or due.
        priority_class: 0 is the most urgent, 9 the least.
        weight: Share of the devices' time inside its class, relative to the others'.
        slo_ms: Latency that counts as good; goodput is measured against it.
        deadline_ms: Default deadline of requests; None: no deadline.
        max_batch_ms: Longest expected run of one batch; None: no cap.
        pinned: Its residents are never evicted.
        quota_mib: Most bytes of its weights and leases on one device; None: no quota.
        precisions: What its weights may be held in when memory is short; fp32 always.
    """

    low: int = Field(default=1, ge=1, le=65_536)
    high: int = Field(default=16, ge=1, le=65_536)
    timeout_ms: Milliseconds = 5.0
    fill: Fill = "eager"
    priority_class: int = Field(default=5, ge=0, le=9)
    weight: float = Field(default=1.0, ge=0.01, le=100, allow_inf_nan=False)
    slo_ms: Span = 5000.0
    deadline_ms: Span | None = None
    max_batch_ms: Span | None = None
    pinned: bool = False
    quota_mib: Annotated[float, Field(ge=0.001, le=MOST_MIB, allow_inf_nan=False)] | None = None
    precisions: tuple[Precision, ...] = ("fp32",)

    @model_validator(mode="after")
    def _full_precision_is_allowed(self) -> Self:
        if "fp32" not in self.precisions or len(set(self.precisions)) < len(self.precisions):
            raise ValueError(
                f"precisions are {', '.join(self.precisions) or 'none'}; name each once, "
                "fp32 among them: weights are loaded at it"
            )
        return self

    @model_validator(mode="after")
    def _low_is_not_above_high(self) -> Self:
        if self.low > self.high:
            raise ValueError(
                f"low ({self.low}) is above high ({self.high}); lower low or raise high"
            )
        return self


class DevicePolicy(Part):
    """Say how a device's memory is divided.

    Attributes:
        pool_mib: What residents and leases may use; None: all that the reserve leaves.
        reserve_mib: What is never lent: context, libraries, NCCL; None: the computed
            default. The arena is fixed at start, so the pool cannot grow beyond it.
        nccl_connections: Peers that NCCL talks to from this device, per direction; its
            buffers are added to the computed default.
        nccl_channels: NCCL's channels.
    """

    pool_mib: Mebibytes | None = None
    reserve_mib: Allowance | None = None
    nccl_connections: Annotated[int, Field(ge=0, le=1024)] = 0
    nccl_channels: Annotated[int, Field(ge=0, le=64)] = 0


class PlacementPolicy(Part):
    """Choose the placement policy and the weights of `memory_aware`'s terms.

    Every term is a number from 0 (best) upwards; a device's score is their
    weighted sum and the lowest wins.
    """

    policy: Literal["round_robin", "least_loaded", "memory_aware"] = "memory_aware"
    headroom: Weight = 1.0
    fragmentation: Weight = 0.5
    queue: Weight = 2.0
    swap: Weight = 2.0
    victim_class: Weight = 1.0


class MemoryPolicy(Part):
    """Say how room is made on a device.

    Attributes:
        eviction: Who goes first: the least recently used (`lru`), the cheapest to get
            back per byte (`cost_aware`), the least urgent class (`priority_lru`).
        ladder: Ways to make room in the order in which they are tried; those left
            out are not. `compact` after `evict`: the cheaper of the two is taken.
        protect_idle_ms: So long after its last use a resident is safe from less
            urgent classes.
        min_residence_ms: So long after its load it is safe from all but more urgent ones.
        demand_window_s: How far back demand counts, for `cost_aware`.
        load_overhead_ms: What a load costs beside its bytes, for `cost_aware`.
        smallest_batch: Share of the waiting items (or of `high`) that a smaller batch
            must take to be preferred to the other ways.
        host_mib: Most bytes of host copies; beyond it weights are read from files.
            None: no limit.
        compaction_mib_per_s: Most bytes moved per second and device; 0: none.
        preallocate: Keep a lease at the high watermark's size while nothing else needs it.
        restore_share: Share of the pool that must be free after a resident got its
            full precision back.
    """

    eviction: EvictionName = "cost_aware"
    ladder: tuple[Rung, ...] = RUNGS
    protect_idle_ms: Milliseconds = 2_000.0
    min_residence_ms: Milliseconds = 20.0
    demand_window_s: float = Field(default=60.0, ge=0.001, le=86_400, allow_inf_nan=False)
    load_overhead_ms: Milliseconds = 50.0
    smallest_batch: Ratio = 0.5
    host_mib: Allowance | None = None
    compaction_mib_per_s: Allowance = 4096.0
    preallocate: bool = False
    restore_share: Ratio = 0.25

    @model_validator(mode="after")
    def _rungs_are_named_once(self) -> Self:
        if len(set(self.ladder)) < len(self.ladder) or self.ladder[-1:] != ("wait",):
            raise ValueError(
                f"the ladder is {', '.join(self.ladder) or 'empty'}; name each way once, "
                "wait last: it is what is left when no other helped"
            )
        return self


class AdmissionPolicy(Part):
    """Bound the queues and the waits.

    Attributes:
        queue_items: Most items waiting per model; beyond it `submit` refuses.
        queue_mib: Most bytes of waiting payloads, all models together.
        aging_ms: A waiting request gains one class per this time.
        pages_in_flight: Most pipeline inputs being worked on at once, per pipeline.
        pages_waiting: Most pipeline inputs waiting for that, per pipeline.
        retry_batches: Most extra runs spent on finding the culprit of a failed batch.
    """

    queue_items: int = Field(default=4096, ge=1, le=10_000_000)
    queue_mib: float = Field(default=1024.0, ge=0.001, le=MOST_MIB, allow_inf_nan=False)
    aging_ms: float = Field(default=2000.0, ge=1, le=3_600_000, allow_inf_nan=False)
    pages_in_flight: int = Field(default=8, ge=1, le=4096)
    pages_waiting: int = Field(default=64, ge=0, le=100_000)
    retry_batches: int = Field(default=16, ge=0, le=1024)


def compile_model(part: ModelPolicy) -> ModelRules:
    """Return a model's part in integer nanoseconds and bytes."""
    return ModelRules(
        watermarks=Watermarks(part.low, part.high, ms_to_ns(part.timeout_ms), part.fill),
        priority_class=part.priority_class,
        weight_milli=round(part.weight * 1000),
        slo_ns=ms_to_ns(part.slo_ms),
        deadline_ns=None if part.deadline_ms is None else ms_to_ns(part.deadline_ms),
        max_batch_ns=None if part.max_batch_ms is None else ms_to_ns(part.max_batch_ms),
        pinned=part.pinned,
        quota_bytes=None if part.quota_mib is None else int(part.quota_mib * MIB),
        precisions=part.precisions,
    )


def compile_memory(part: MemoryPolicy) -> MemoryRules:
    """Return the memory's part in integer nanoseconds and bytes."""
    return MemoryRules(
        eviction=part.eviction,
        ladder=part.ladder,
        protect_idle_ns=ms_to_ns(part.protect_idle_ms),
        min_residence_ns=ms_to_ns(part.min_residence_ms),
        demand_window_ns=round(part.demand_window_s * NS_PER_S),
        load_overhead_ns=ms_to_ns(part.load_overhead_ms),
        smallest_batch=part.smallest_batch,
        move_bytes_per_s=int(part.compaction_mib_per_s * MIB),
        preallocate=part.preallocate,
        restore_share=part.restore_share,
    )
