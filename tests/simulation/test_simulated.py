"""The simulated driver: figures that can be worked out by hand, and the same run every time."""

from __future__ import annotations

import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from engine.drivers.simulated import simulate
from engine.drivers.simulation_report import Outcome
from engine.load.scenario import parse_scenario
from tests.simulation.golden import SCENARIOS
from tests.simulation.scenarios import device, model, scenario

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
from engine.drivers.simulated import simulate
from tests.simulation.golden import SCENARIOS
scenario = SCENARIOS["memory_aware"]().seeded(int(sys.argv[1])).configured(sys.argv[2:])
print(simulate(scenario).report()["decision_log_sha256"])
"""
KEYS = {
    *("offered_hz", "completed_hz", "goodput_hz", "slo_attainment", "latency_ms"),
    *("mean_batch_items", "memory_utilisation", "useful_occupancy", "external_fragmentation"),
    *("unusable_largest", "loads_per_s", "loaded_bytes_per_s", "evictions_per_s"),
    *("moved_bytes_per_s", "expired", "refused", "wall_s", "events", "decision_log_sha256"),
}


def steady(**changes: object) -> Outcome:
    """Simulate 10 requests/s of one model that takes 5 ms each, for 10 s."""
    steps = {"floor": 0, "fixed": 4, "per_item": 1}
    document = scenario(
        [model("a", latency_ms=steps, **changes)], kind="constant", rate_hz=10, seconds=10
    )
    return simulate(parse_scenario(document))


def test_a_lone_request_takes_its_service_time():
    report = steady().report()
    assert report["latency_ms"] == dict.fromkeys(("p50", "p90", "p99", "p999", "max"), 5.0)
    assert report["mean_batch_items"] == 1
    assert (report["offered_hz"], report["completed_hz"], report["goodput_hz"]) == (10, 10, 10)
    assert report["slo_attainment"] == 1
    assert report["loads_per_s"] == report["evictions_per_s"] == report["expired"] == 0


def test_the_first_request_waits_for_the_load_of_its_model():
    outcome = steady()
    first_ns = outcome.ended_ns[0] - int(outcome.arrivals_ns[0])
    assert first_ns == 10 * 2**20 + 5_000_000  # 10 MiB at 1 GB/s, then 5 ms


def test_memory_is_held_by_the_weights_and_for_a_twentieth_of_the_time_by_a_lease():
    report = steady().report()
    held, free = 10 / 64, 54 / 64
    assert report["memory_utilisation"] == pytest.approx(held + 0.05 * 2 / 64, abs=0.002)
    assert report["useful_occupancy"] == pytest.approx(held)
    assert report["external_fragmentation"] == pytest.approx(0, abs=1e-9)
    assert report["unusable_largest"] == pytest.approx(1 - 5 * 10 / 64 / free, abs=0.005)


def test_requests_slower_than_their_slo_are_no_goodput():
    report = steady(slo_ms=4.9).report()
    assert (report["goodput_hz"], report["slo_attainment"], report["completed_hz"]) == (
        0,
        0,
        10,
    )


def test_what_waits_at_the_end_counts_as_missed_only_when_it_is_older_than_its_slo():
    marks = {"low": 1, "high": 1, "timeout_ms": 0}
    slow = model("a", latency_ms={"fixed": 1000, "per_item": 0}, slo_ms=2000, watermarks=marks)
    document = scenario([slow], kind="constant", rate_hz=10, seconds=10)
    outcome = simulate(parse_scenario({**document, "warmup_s": 0}))
    report, counts = outcome.report(), outcome.counts()
    assert counts["completed"] == 9 and counts["unfinished"] == counts["submitted"] - 9
    young = 20  # arrived in the last two seconds
    assert report["slo_attainment"] == pytest.approx(2 / (counts["submitted"] - young), rel=0.1)


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_submitted_request_ends_in_one_way_or_is_unfinished(name: str):
    counts = simulate(SCENARIOS[name]()).counts()
    assert counts.pop("submitted") == sum(counts.values()) > 0
    assert counts["failed"] == counts["cancelled"] == 0


def test_the_report_has_the_keys_of_the_scenario_format():
    report = steady().report()
    assert set(report) == KEYS
    assert list(report["latency_ms"]) == ["p50", "p90", "p99", "p999", "max"]


def test_a_scenario_without_requests_after_its_warm_up_has_no_latency():
    document = scenario([model("a")], kind="constant", rate_hz=1, seconds=0.5)
    report = simulate(parse_scenario(document)).report()
    assert report["latency_ms"]["p50"] is None
    assert report["offered_hz"] == 0


def test_a_model_that_fits_nowhere_is_refused():
    document = scenario([model("a", weight_mib=100)], devices=[device()])
    outcome = simulate(parse_scenario(document))
    assert outcome.counts()["refused"] == outcome.counts()["submitted"] > 0


def test_the_hash_is_that_of_the_written_decisions():
    pieces: list[str] = []
    outcome = simulate(SCENARIOS["eviction"](), write=pieces.append)
    assert outcome.decision_log_sha256 == sha256("".join(pieces).encode()).hexdigest()


def test_two_fresh_processes_decide_the_same_and_another_seed_or_policy_differs():
    runs = [["7"], ["7"], ["8"], ["7", "placement.policy=least_loaded"]]
    first, again, seed, policy = (fresh(*arguments) for arguments in runs)
    assert first == again
    assert len({first, seed, policy}) == 3


def test_another_policy_has_another_hash_even_where_it_decides_the_same():
    one = SCENARIOS["eager"]()
    other = one.configured(["placement.policy=round_robin"])
    assert simulate(one).decision_log_sha256 != simulate(other).decision_log_sha256


def fresh(*arguments: str) -> str:
    """Return the hash that a new process finds; its string hashing differs from ours."""
    command = [sys.executable, "-c", PROGRAM, *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
