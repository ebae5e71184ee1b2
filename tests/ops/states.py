"""Snapshots for tests, made by hand: one device, one model, and what changes in them."""

from __future__ import annotations

from engine.memory.state import DeviceState, MemoryState
from engine.metrics import Counters, LatencyHistogram
from engine.snapshot import ModelState, Snapshot
from engine.units import MIB, NS_PER_S


def device(name: str = "cpu:0", **changes: object) -> DeviceState:
    """Return a device of 100 MiB with 40 MiB of residents and a hole of 60 MiB."""
    fields: dict[str, object] = {
        "kind": "cpu",
        "simulated": False,
        "addressed": False,
        "capacity_bytes": 102 * MIB,
        "reserve_bytes": 2 * MIB,
        "pool_bytes": 100 * MIB,
        "pool_target_bytes": 100 * MIB,
        "resident_bytes": 40 * MIB,
        "lease_bytes": 0,
        "needed_lease_bytes": 0,
        "free_bytes": 60 * MIB,
        "largest_hole_bytes": 60 * MIB,
        "external_fragmentation": 0.0,
        "holes": (60 * MIB,),
        "blocks": (),
        "residents": (),
        "running": None,
        "prepared": None,
        "pending_loads": (),
        "busy_until_ns": 0,
        "queued_ns": 0,
        "load_bytes_per_s": 1e9,
        "is_draining": False,
        "is_lost": False,
        "truth_bytes": 0,
        "busy_ns": 0,
    }
    return DeviceState(name, **{**fields, **changes})  # type: ignore[arg-type]  # by name


def model(name: str = "digits", *latencies_ns: int, **changes: object) -> ModelState:
    """Return a model that completed a request for each latency."""
    latency = LatencyHistogram()
    for ns in latencies_ns:
        latency.record(ns)
    fields: dict[str, object] = {
        "counters": Counters(submitted=len(latencies_ns), completed=len(latencies_ns)),
        "latency": latency,
        "queueing": LatencyHistogram(),
        "service": LatencyHistogram(),
        "queued_items": 0,
        "running_items": 0,
        "resident_on": (),
        "loading_on": (),
        "weight_bytes": 40 * MIB,
        "host_bytes": 40 * MIB,
        "safe_items": (),
    }
    return ModelState(name, **{**fields, **changes})  # type: ignore[arg-type]  # by name


def snapshot(
    second: float, devices: tuple[DeviceState, ...] = (), models: tuple[ModelState, ...] = ()
) -> Snapshot:
    """Return the state at that second of the engine's clock."""
    at_ns = int(second * NS_PER_S)
    return Snapshot(
        serial=int(second),
        at_ns=at_ns,
        policy_version=0,
        is_paused=False,
        memory=MemoryState(at_ns, devices),
        lanes=(),
        models=models,
        decision_counts=(),
        no_hole_events=0,
    )
