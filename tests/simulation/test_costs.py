"""Costs on virtual time: what waits for what, and chance that depends on the batch alone."""

from __future__ import annotations

import statistics

import pytest

from engine.drivers.simulated_costs import Costs, service_ns
from engine.effects import ConvertWeights, EvictWeights, LoadWeights, MoveWeights, RunBatch
from engine.events import BatchFinished, EvictFinished, LoadFinished
from engine.load.scenario import parse_scenario
from engine.profile import Latency
from engine.spec import LaneKey
from tests.simulation.scenarios import device, model, scenario

MS = 1_000_000
STEADY = {"floor": 0, "fixed": 4, "per_item": 1}


def costs() -> Costs:
    """Return two devices that load 1 GB/s, move 10 GB/s, run 4 ms + 1 ms per item."""
    document = scenario([model("a", latency_ms=STEADY)], devices=[device("x"), device("y")])
    found = parse_scenario(document)
    return Costs(found.devices, found.profiles, seed=1)


def load(serial: int, name: str = "x", size: int = 5 * MS) -> LoadWeights:
    return LoadWeights(serial, name, "a", "fp32", 0, size)


def batch(serial: int, items: int, name: str = "x") -> RunBatch:
    return RunBatch(
        batch_id=serial,
        device=name,
        lane=LaneKey("a", (), "float32"),
        items=items,
        parts=(),
        is_whole=True,
        lease_offset=0,
        lease_bytes=0,
    )


def test_loads_wait_for_each_other_on_one_device_only():
    found = costs()
    assert found.other(load(1), 0) == (5 * MS, LoadFinished(1, 5 * MS, 5 * MS))
    assert found.other(load(2), 2 * MS)[0] == 10 * MS
    assert found.other(load(3, "y"), 2 * MS)[0] == 7 * MS
    assert found.other(load(4), 20 * MS)[0] == 25 * MS


def test_loads_overlap_with_batches():
    found = costs()
    found.other(load(1), 0)
    assert found.batch(batch(2, 3), 1 * MS) == (8 * MS, BatchFinished(2, 7 * MS))


def test_an_eviction_takes_no_time_even_behind_a_load():
    found = costs()
    found.other(load(1), 0)
    assert found.other(EvictWeights(2, "x", "a", 0, 9), MS) == (MS, EvictFinished(2, 0, 9))


def test_moves_and_conversions_occupy_the_device():
    found = costs()
    assert found.other(MoveWeights(1, "x", "a", 0, 512, 20 * MS), 0)[0] == 2 * MS
    assert found.other(ConvertWeights(2, "x", "a", "bf16", 0, 0, 10 * MS), 0)[0] == 3 * MS
    assert found.batch(batch(3, 1), 0)[0] == 8 * MS


def test_the_floor_holds_for_small_batches():
    latency = Latency(10 * MS, 4 * MS, MS)
    times = [service_ns(latency, items, seed=1, batch_id=9) for items in (1, 6, 7)]
    assert times == [10 * MS, 10 * MS, 11 * MS]


def test_noise_is_the_same_for_the_same_batch_and_differs_between_batches_and_seeds():
    latency = Latency(0, 10 * MS, 0, "normal", 0.02)
    draw = [service_ns(latency, 1, seed=seed, batch_id=id_) for seed, id_ in ((1, 5), (1, 5))]
    assert draw[0] == draw[1]
    assert draw[0] != service_ns(latency, 1, seed=1, batch_id=6)
    assert draw[0] != service_ns(latency, 1, seed=2, batch_id=5)


@pytest.mark.parametrize(
    ("latency", "spread"),
    [
        (Latency(0, 10 * MS, 0, "normal", 0.02), 0.02),
        (Latency(0, 10 * MS, 0, "exponential"), 1.0),
    ],
)
def test_noise_has_the_stated_mean_and_spread(latency: Latency, spread: float):
    times = [service_ns(latency, 1, seed=3, batch_id=id_) / MS for id_ in range(20_000)]
    assert statistics.fmean(times) == pytest.approx(10, rel=3 * spread / 141)
    assert statistics.stdev(times) == pytest.approx(10 * spread, rel=0.03)
