"""Batching: a weight-bound model, batched and unbatched, against the bare torch loop."""

from __future__ import annotations

import sys
import time

import numpy as np
import torch

from benchmarks.measure import Window, arguments, closed_loop, median, report
from engine.devices.cpu import CpuDevice
from engine.devices.process import tune_interpreter, tune_memory
from engine.devices.weights import Images
from engine.drivers.clock import MonotonicClock
from engine.engine import Engine
from engine.policy import Policy
from engine.spec import DeviceSpec, ModelSpec
from engine.units import MIB
from sample_models import MODELS

MAX_BATCH = 16
CLIENTS = (1, 16, 64)


def ranker() -> ModelSpec:
    """Return the weight-bound sample model: 3 x Linear(2048, 2048)."""
    return next(spec for spec in MODELS if spec.name == "ranker")


def make_engine(images: Images, high: int, *, clients: int) -> Engine:
    """Return an engine with one CPU device; `low` is what the clients can fill."""
    low = min(high, clients)
    policy = Policy().replace(
        models={"ranker": {"low": low, "high": high, "timeout_ms": 5.0}},
    )
    spec = DeviceSpec("cpu:0", "cpu", 256 * MIB, 16 * MIB, False, 5e9, 5e9)
    device = CpuDevice(spec, images)
    engine = Engine([device], images, policy=policy, clock=MonotonicClock())
    engine.add_model(ranker())
    x = np.zeros((1, 2048), np.float32)
    engine.infer("ranker", x)
    return engine


def run_engine(high: int, clients: int, *, seconds: float) -> Window:
    """Measure the engine at one largest batch and one number of asyncio clients."""
    engine = make_engine(Images(), high, clients=clients)
    x = np.random.default_rng(0).random((1, 2048), np.float32)
    try:
        return closed_loop(lambda: engine.infer_async("ranker", x), clients, seconds=seconds)
    finally:
        engine.close()


def run_limit(batch: int, seconds: float) -> float:
    """Return items per second of the model in a plain loop at that batch."""
    torch.set_num_threads(1)
    module = ranker().build()
    assert isinstance(module, torch.nn.Module)
    x = torch.rand(batch, 2048)
    took: list[float] = []
    with torch.inference_mode():
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            start = time.perf_counter()
            module(x)
            took.append(time.perf_counter() - start)
    return batch / median(took)


def at(clients: int, rounds: int, *, seconds: float) -> dict[str, float]:
    """Interleave limit, batch 1 and batched at one number of clients."""
    batch = min(MAX_BATCH, clients)
    limit: list[float] = []
    single: list[Window] = []
    batched: list[Window] = []
    for number in range(rounds):
        print(f"{clients} clients, round {number + 1} of {rounds}", file=sys.stderr)
        before = run_limit(batch, seconds / 2)
        batched.append(run_engine(MAX_BATCH, clients, seconds=seconds))
        limit.append((before + run_limit(batch, seconds / 2)) / 2)
        single.append(run_engine(1, clients, seconds=seconds))
    shares = [b.per_s / top for b, top in zip(batched, limit, strict=True)]
    gains = [b.per_s / s.per_s for b, s in zip(batched, single, strict=True)]
    return {
        "engine_items_per_s": round(median([w.per_s for w in batched]), 1),
        "limit_items_per_s": round(median(limit), 1),
        "batch1_items_per_s": round(median([w.per_s for w in single]), 1),
        "share_of_limit": round(median(shares), 3),
        "gain_over_batch1": round(median(gains), 2),
        "p95_ms": round(median([w.p95_ms for w in batched]), 2),
        "batch1_p95_ms": round(median([w.p95_ms for w in single]), 2),
    }


def main() -> None:
    """Report every number of clients; the headline is 64."""
    options = arguments(__doc__ or "", rounds=3, seconds=3.0)
    tune_memory()
    tune_interpreter()
    results = {
        str(clients): at(clients, options.rounds, seconds=options.seconds)
        for clients in CLIENTS
    }
    headline = results["64"]
    report(
        {
            "benchmark": "batching: ranker, 3 x Linear(2048) + ReLU, max batch 16, one thread",
            **headline,
            "clients": results,
        },
        options.json,
    )


if __name__ == "__main__":
    main()
