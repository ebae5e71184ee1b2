"""One contract for both drivers: every request ends once, counts add up, books balance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from engine.drivers.simulated import simulate
from engine.errors import RequestError
from engine.load.scenario import parse_scenario
from engine.policy import Policy
from tests.engine.drivers.bench_device import TestBench, open_engine

REQUESTS = 300
MODELS = ("a", "b", "c", "d")
WEIGHT_BYTES = 10 * 2**20


@dataclass(frozen=True)
class Ended:
    """Say what became of all requests, and what is left when nothing is under way."""

    completed: int
    refused: int
    others: int
    lease_bytes: int


def live() -> Ended:
    """Serve four models that do not fit together, on threads."""
    benches = [TestBench(f"bench:{index}", pool_mib=25) for index in range(2)]
    engine = open_engine(benches, policy=Policy(), models=MODELS)
    ended = {"completed": 0, "refused": 0, "others": 0}
    try:
        futures = [
            engine.submit(MODELS[n % 4], np.full((1, 2), n, np.float32))
            for n in range(REQUESTS)
        ]
        for n, future in enumerate(futures):
            try:
                assert np.asarray(future.result(30))[0, 0] == 2 * n
                ended["completed"] += 1
            except RequestError:
                ended["others"] += 1
        devices = engine.snapshot().memory.devices
        assert all(d.held_bytes + d.free_bytes == d.pool_bytes for d in devices)
        return Ended(**ended, lease_bytes=sum(d.lease_bytes for d in devices))
    finally:
        engine.close()


def simulated() -> Ended:
    """Serve the same on virtual time."""
    device = {
        "kind": "simulated",
        "capacity_bytes": 25 * 2**20,
        "reserve_bytes": 0,
        "load_bytes_per_s": 1e9,
        "move_bytes_per_s": 1e10,
    }
    model = {
        "source": "made up for this test",
        "weight_bytes": WEIGHT_BYTES,
        "workspace_bytes": {"fixed": 0, "per_item": 1024},
        "latency_ms": {"floor": 0, "fixed": 0.1, "per_item": 0.1, "sigma": 0.0},
        "priority": 5,
        "slo_ms": 5000,
        "watermarks": {"low": 1, "high": 16, "timeout_ms": 5},
    }
    document = {
        "name": "contract",
        "seed": 3,
        "duration_s": 40,
        "warmup_s": 0,
        "devices": [{"name": f"sim:{index}", **device} for index in range(2)],
        "models": [{"name": name, **model} for name in MODELS],
        "load": {
            "kind": "gamma",
            "rate_hz": REQUESTS / 40,
            "cv": 1,
            "popularity": {"kind": "zipf", "s": 0.1},
        },
    }
    counts = simulate(parse_scenario(document)).counts()
    others = sum(counts[name] for name in ("failed", "expired", "cancelled"))
    unfinished = counts.get("unfinished", 0)
    total = counts["completed"] + counts["refused"] + others + unfinished
    assert counts["submitted"] == total
    return Ended(counts["completed"] + unfinished, counts["refused"], others, 0)


@pytest.mark.parametrize("drive", [live, simulated])
def test_every_request_ends_once_and_nothing_stays_leased(drive: Callable[[], Ended]):
    ended = drive()
    assert ended.completed > 0
    assert (ended.refused, ended.others, ended.lease_bytes) == (0, 0, 0)
