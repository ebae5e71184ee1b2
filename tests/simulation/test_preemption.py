"""Real-time against offline: what a class-0 model waits for when class 5 fills the arena."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.drivers.simulated import simulate
from engine.drivers.simulation_report import Outcome
from engine.load.scenario import parse_scenario, read_scenario
from tests.simulation.scenarios import MIB, Document, device, model, scenario

MS = 1_000_000
SHIPPED = Path(__file__).parents[2] / "benchmarks" / "scenarios" / "realtime-offline.json"
EXACT = {"floor": 0, "fixed": 4, "per_item": 1, "sigma": 0}


def crowded(*, seconds: float = 20.0, **memory: object) -> Outcome:
    """Fill an arena of 128 MiB with four class-5 models under load; one of class 0 is rare."""
    offline = {"latency_ms": {**EXACT, "fixed": 40, "per_item": 5}, "priority": 5}
    urgent = {
        "latency_ms": EXACT,
        "priority": 0,
        "watermarks": {"low": 1, "high": 1, "timeout_ms": 1},
    }
    models: list[Document] = [model(f"m{n}", weight_mib=25, **offline) for n in range(4)]
    models.append(model("urgent", weight_mib=25, **urgent))
    document = scenario(
        models,
        devices=[device(pool_mib=128)],
        seconds=seconds,
        rate_hz=60,
        popularity={"kind": "zipf", "s": 2.0},
    )
    settings = [f"memory.{name}={value}" for name, value in memory.items()]
    return simulate(parse_scenario(document).configured(settings))


def latencies_ns(outcome: Outcome, name: str) -> np.ndarray:
    """Return the latencies of a model's requests; all of them were served."""
    index = [p.key.model for p in outcome.scenario.profiles].index(name)
    chosen = outcome.models == index
    ended = np.asarray(outcome.ended_ns, np.int64)[chosen]
    arrived = outcome.arrivals_ns[chosen]
    is_late = arrived > outcome.scenario.duration_ns - 5_000 * MS
    assert (ended[~is_late] > 0).all(), "nobody is lost"
    return (ended - arrived)[~is_late & (ended > 0)]


def test_a_class_0_model_is_served_within_its_load_time_and_one_class_5_batch():
    outcome = crowded(protect_idle_ms=600_000)
    found = latencies_ns(outcome, "urgent")
    load_ns = 25 * MIB
    longest_ns, own_ns = (40 + 5 * 8) * MS, 5 * MS
    assert len(found) > 10
    assert found.max() <= load_ns + longest_ns + own_ns
    # Most find it resident: class 5 never takes its memory.
    assert np.median(found) <= longest_ns + own_ns


def test_where_class_5_may_take_its_memory_a_load_under_way_is_all_that_comes_on_top():
    outcome = crowded(protect_idle_ms=50)
    found = latencies_ns(outcome, "urgent")
    load_ns, longest_ns, own_ns = 25 * MIB, (40 + 5 * 8) * MS, 5 * MS
    assert found.max() <= 2 * load_ns + longest_ns + own_ns


def test_class_5_goes_on_being_served_beside_it():
    outcome = crowded(protect_idle_ms=600_000)
    counts = outcome.counts()
    assert counts["failed"] == counts["refused"] == counts["expired"] == 0
    assert all(len(latencies_ns(outcome, f"m{n}")) > 10 for n in range(3))


@pytest.mark.parametrize("eviction", ["lru", "cost_aware", "priority_lru"])
def test_the_shipped_example_keeps_the_detector_within_half_a_second(eviction: str):
    scenario_of = read_scenario(SHIPPED).configured([f"memory.eviction={eviction}"])
    outcome = simulate(scenario_of)
    found = latencies_ns(outcome, "detector")
    analysis = latencies_ns(outcome, "analysis-1")
    assert np.quantile(found, 0.99) <= 500 * MS
    assert np.median(found) < np.median(analysis) / 3
