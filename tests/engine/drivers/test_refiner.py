"""Tests of how measured workspaces correct the plan."""

from __future__ import annotations

from engine.drivers.refiner import ENOUGH, Refiner
from engine.effects import RunBatch
from engine.events import Event, ProfileUpdated
from engine.profile import Latency, Profile, ProfileKey
from engine.spec import LaneKey

LANE = LaneKey("a", (2,), "float32")


def batch(items: int) -> RunBatch:
    return RunBatch(1, "cpu:0", LANE, items, (), True, None, 0)


def known() -> tuple[Refiner, list[Event]]:
    told: list[Event] = []
    refiner = Refiner(told.append)
    key = ProfileKey("a", "cpu", shape=(2,))
    refiner.know(Profile(key, 512, 0, 1000, Latency(0, 0, 1), source="planned"))
    return refiner, told


def workspaces(told: list[Event]) -> list[int]:
    return [e.profile.workspace_item_bytes for e in told if isinstance(e, ProfileUpdated)]


def test_one_batch_that_needed_more_raises_the_plan_at_once():
    refiner, told = known()
    refiner.measured("cpu", batch(4), peak_bytes=6000)
    assert workspaces(told) == [round(1000 * 1.5 * 1.05)]


def test_only_several_batches_that_needed_clearly_less_lower_the_plan_to_the_largest():
    refiner, told = known()
    for n in range(ENOUGH):
        assert workspaces(told) == []
        refiner.measured("cpu", batch(4), peak_bytes=2000 if n else 2400)
    assert workspaces(told) == [round(1000 * 0.6 * 1.05)]


def test_a_plan_that_is_about_right_stays():
    refiner, told = known()
    for _ in range(100):
        refiner.measured("cpu", batch(2), peak_bytes=1900)
    assert told == []


def test_a_corrected_plan_says_so_once():
    refiner, told = known()
    refiner.measured("cpu", batch(1), peak_bytes=2000)
    refiner.measured("cpu", batch(1), peak_bytes=9000)
    last = told[-1]
    assert isinstance(last, ProfileUpdated)
    assert last.profile.source.count("corrected") == 1


def test_a_lane_that_nobody_knows_is_ignored():
    refiner, told = known()
    refiner.measured("cuda", batch(1), peak_bytes=2000)
    assert told == []
