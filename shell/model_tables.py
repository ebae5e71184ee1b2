"""Model tables: what models and pipelines did, and what their batches may hold, as rows."""

from __future__ import annotations

from collections.abc import Sequence

from engine.memory.state import DeviceState
from engine.metrics import Counters, LatencyHistogram
from engine.policy import Policy
from engine.profile import Profile
from engine.snapshot import ModelState, Snapshot
from engine.units import align_up, format_bytes, ms_to_ns
from ops.station import Station
from shell.tables import Rows
from shell.words import figure, milliseconds

ALIGNMENT = 512
RIGHT = (
    "items per batch",
    "weights",
    "p50",
    "p99",
    "within SLO",
    "wait p50",
    "wait p99",
    "service p50",
    "service p99",
    "service per item",
    "pool − weights − fixed",
    "per item",
)


def time_of(histogram: LatencyHistogram, share: float) -> str | None:
    """Return a percentile as text; None when nothing was counted."""
    if not histogram.count:
        return None
    return milliseconds(histogram.percentile_ns(share) / 1e6)


def models(snapshot: Snapshot, policy: Policy) -> Rows:
    """Return what every model did since the start."""
    return [
        {
            "model": model.name,
            "class": policy.model(model.name).priority_class,
            "on": ", ".join(model.resident_on) or ("loading" if model.loading_on else None),
            "weights": format_bytes(model.weight_bytes),
            "queued": model.queued_items,
            "running": model.running_items,
            **_counted(model.counters, model.latency, slo_ms=policy.model(model.name).slo_ms),
            "loads": model.counters.loads,
            "evictions": model.counters.evictions,
        }
        for model in snapshot.models
    ]


def pipelines(station: Station) -> Rows:
    """Return what every pipeline did since the start."""
    rows: Rows = []
    for name, pipeline in station.pipelines.items():
        counters, latency, in_flight, waiting = pipeline.counters()
        rules = station.engine.policy.model(name)
        rows.append(
            {
                "pipeline": name,
                "class": rules.priority_class,
                "stages": " → ".join(pipeline.spec.models),
                "waiting": waiting,
                "in flight": in_flight,
                **_counted(counters, latency, slo_ms=rules.slo_ms),
            }
        )
    return rows


def _counted(
    counters: Counters, latency: LatencyHistogram, *, slo_ms: float
) -> dict[str, object]:
    good = latency.share_below(ms_to_ns(slo_ms)) if latency.count else None
    return {
        "completed": counters.completed,
        "failed": counters.failed,
        "refused": counters.refused,
        "p50": time_of(latency, 0.5),
        "p99": time_of(latency, 0.99),
        "within SLO": None if good is None else f"{good:.1%}",
    }


def batching(snapshot: Snapshot) -> Rows:
    """Return what batching did for every model since the start."""
    return [_batched(model) for model in snapshot.models]


def _batched(model: ModelState) -> dict[str, object]:
    batches, items = model.counters.batches, model.counters.items_completed
    per_item = model.service.sum_ns / items / 1e6 if items else None
    return {
        "model": model.name,
        "batches": batches,
        "items per batch": figure(items / batches) if batches else None,
        "queued": model.queued_items,
        "wait p50": time_of(model.queueing, 0.5),
        "wait p99": time_of(model.queueing, 0.99),
        "service p50": time_of(model.service, 0.5),
        "service p99": time_of(model.service, 0.99),
        "service per item": None if per_item is None else milliseconds(per_item),
    }


def limits(profiles: Sequence[Profile], devices: Sequence[DeviceState]) -> Rows:
    """Return the largest batch that fits beside the weights, with its arithmetic.

    (pool − weights − fixed workspace) / workspace per item; a row per model,
    shape, and kind and pool size of device.
    """
    kinds = {(d.kind, d.pool_bytes): d for d in reversed(devices)}
    return [
        _limit(profile, device)
        for profile in profiles
        for device in reversed(kinds.values())
        if device.kind == profile.key.device_kind
    ]


def _limit(profile: Profile, device: DeviceState) -> dict[str, object]:
    """Return one row; on a card leases come from a budget of their own, which it only names."""
    left = device.pool_bytes - align_up(profile.weight_bytes, ALIGNMENT)
    sizes = (device.pool_bytes, profile.weight_bytes, profile.workspace_fixed_bytes)
    has_budget = device.kind == "cuda"
    return {
        "model": profile.key.model,
        "item shape": " × ".join(map(str, profile.key.shape)) or "any",
        "device": device.kind,
        "pool − weights − fixed": "a share of the pool"
        if has_budget
        else " − ".join(format_bytes(size) for size in sizes),
        "per item": format_bytes(profile.workspace_item_bytes),
        "largest batch": None if has_budget else max(0, profile.max_items(left)),
        "source": profile.source,
    }
