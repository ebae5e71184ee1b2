"""Small scenarios for the tests, as documents of the format that users write."""

from __future__ import annotations

from collections.abc import Sequence

MIB = 2**20
Document = dict[str, object]


def device(name: str = "gpu0", *, pool_mib: int = 64) -> Document:
    """Return a device with that pool, 1 GB/s loads, and 2 MiB more for the guard page."""
    return {
        "name": name,
        "kind": "simulated",
        "capacity_bytes": (pool_mib + 6) * MIB,
        "reserve_bytes": 4 * MIB,
        "load_bytes_per_s": 1e9,
        "move_bytes_per_s": 1e10,
    }


def model(name: str, *, weight_mib: int = 10, priority: int = 5, **changes: object) -> Document:
    """Return a model of 4 ms + 1 ms per item in batches of 1 to 8; changes replace fields."""
    return {
        "name": name,
        "weight_bytes": weight_mib * MIB,
        "workspace_bytes": {"fixed": MIB, "per_item": MIB},
        "latency_ms": {"floor": 0, "fixed": 4, "per_item": 1, "sigma": 0.05},
        "priority": priority,
        "slo_ms": 100,
        "watermarks": {"low": 1, "high": 8, "timeout_ms": 20},
        **changes,
    }


def scenario(
    models: Sequence[Document],
    *,
    devices: Sequence[Document] | None = None,
    seconds: float = 0.5,
    **load: object,
) -> Document:
    """Return a whole scenario: Poisson arrivals at 100/s unless `load` says otherwise."""
    return {
        "name": "small",
        "seed": 7,
        "duration_s": seconds,
        "warmup_s": seconds / 5,
        "devices": list(devices or [device()]),
        "models": list(models),
        "load": {"kind": "poisson", "rate_hz": 100, **load},
    }
