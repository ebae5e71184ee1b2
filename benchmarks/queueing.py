"""Queueing: the simulation against theory: Poisson arrivals, one server, fixed service."""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context

from benchmarks.measure import arguments, report
from engine.drivers.simulated import simulate
from engine.load.scenario import Scenario, parse_scenario
from engine.units import NS_PER_MS

SERVICE_MS = 10
LOADS = (0.5, 0.8)
SEEDS = (1, 2, 3, 4, 5)
BATCHES_PER_SEED = 20
T_95 = 1.984
"""Two-sided 95 % quantile of Student's t with 99 degrees of freedom: 5 x 20 batches."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Compare a measured mean wait with its theory; times in milliseconds.

    Attributes:
        width: Full width of the interval as a share of the theory's value.
    """

    load: float
    requests: int
    theory_ms: float
    mean_ms: float
    low_ms: float
    high_ms: float
    width: float
    is_inside: bool


def one_server(load: float, requests: int) -> Scenario:
    """Return an unbatched model on one device, offered that share of what it can serve."""
    seconds = requests * SERVICE_MS / 1000 / load
    document = {
        "name": f"one server at load {load}",
        "duration_s": seconds,
        "warmup_s": seconds / 20,
        "devices": [
            {
                "name": "server",
                "kind": "simulated",
                "capacity_bytes": 100_000_000,
                "reserve_bytes": 0,
                "load_bytes_per_s": 1e9,
                "move_bytes_per_s": 1e9,
            }
        ],
        "models": [
            {
                "name": "fixed",
                "weight_bytes": 1_000_000,
                "workspace_bytes": {"fixed": 0, "per_item": 1000},
                "latency_ms": {"fixed": SERVICE_MS, "per_item": 0},
                "slo_ms": 100,
                "watermarks": {"low": 1, "high": 1, "timeout_ms": 0},
            }
        ],
        "load": {"kind": "poisson", "rate_hz": load * 1000 / SERVICE_MS},
    }
    return parse_scenario(document).configured(["admission.queue_items=1000000"])


def mean_waits_ms(load: float, requests: int, *, seed: int) -> list[float]:
    """Simulate one seed and return the mean wait of each of its batches of requests."""
    outcome = simulate(one_server(load, requests).seeded(seed))
    waits_ms = outcome.latencies_ns() / NS_PER_MS - SERVICE_MS
    size = len(waits_ms) // BATCHES_PER_SEED
    return [
        float(waits_ms[start : start + size].mean())
        for start in range(0, size * BATCHES_PER_SEED, size)
    ]


def compare(load: float, requests: int, *, seeds: Sequence[int] = SEEDS) -> Agreement:
    """Return the 95 % interval of the mean wait, from batch means over all seeds.

    Args:
        requests: Per seed, so many that a batch is far longer than its memory.

    Source: M/D/1: the mean wait is load / (2 (1 - load)) service times
    (Pollaczek and Khinchine).
    """
    workers = min(len(seeds), os.cpu_count() or 1)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        runs = [pool.submit(mean_waits_ms, load, requests, seed=seed) for seed in seeds]
        means = [mean for run in runs for mean in run.result()]
    theory = SERVICE_MS * load / (2 * (1 - load))
    mean = statistics.fmean(means)
    half = T_95 * statistics.stdev(means) / math.sqrt(len(means))
    return Agreement(
        load=load,
        requests=requests * len(seeds),
        theory_ms=theory,
        mean_ms=mean,
        low_ms=mean - half,
        high_ms=mean + half,
        width=2 * half / theory,
        is_inside=mean - half <= theory <= mean + half,
    )


def main() -> None:
    """Print the agreement at both loads as one JSON object."""
    options = arguments("M/D/1 against theory", rounds=1, seconds=60)
    started = time.perf_counter()
    # Some 20 000 unbatched requests per second and core; the higher load needs more of them.
    found = {
        str(load): asdict(compare(load, int(options.seconds * 20_000 * share / len(SEEDS))))
        for load, share in zip(LOADS, (0.25, 1.5), strict=True)
    }
    result = {"loads": found, "seeds": SEEDS, "wall_s": time.perf_counter() - started}
    report(result, options.json)


if __name__ == "__main__":
    main()
