"""Loads: one at a time, editable, kept as runs; the default one fits the machine."""

from __future__ import annotations

import pytest

from engine.errors import InputError
from engine.load.plan import LoadPlan
from ops.station import Station

PLAN = LoadPlan("digit_reader", rate_hz=20)


def test_a_second_load_is_refused_and_the_first_goes_on(station: Station) -> None:
    run_id = station.loads.start(PLAN, author="ada")
    with pytest.raises(InputError, match=f"run {run_id} is still sending to digit_reader"):
        station.loads.start(PLAN, author="bob")
    status = station.loads.status()
    assert status is not None
    assert status.is_running
    assert (status.run_id, status.plan) == (run_id, PLAN)
    assert len([run for run in station.store.runs(limit=10) if run.state == "open"]) == 1
    station.loads.stop()


def test_an_edit_goes_into_the_running_load_and_a_stop_finishes_its_run(
    station: Station,
) -> None:
    with pytest.raises(InputError, match="none is running"):
        station.loads.edit(PLAN)
    run_id = station.loads.start(PLAN, author="ada", name="edited")
    faster = LoadPlan("digit_reader", rate_hz=200)
    station.loads.edit(faster)
    with pytest.raises(InputError, match="target: found ranker, wanted digit_reader"):
        station.loads.edit(LoadPlan("ranker"))
    station.loads.wait(1.0)
    status = station.loads.stop()
    assert status is not None
    assert not status.is_running
    assert status.plan == faster
    assert status.completed > 20
    ended = status.completed + status.failed + status.refused + status.cancelled
    assert ended == status.sent
    run = station.store.run(run_id)
    assert (run.name, run.state, run.author) == ("edited", "finished", "ada")
    assert run.summary["completed"] == status.completed


def test_an_unknown_target_opens_no_run(station: Station) -> None:
    before = station.store.runs(limit=100)
    with pytest.raises(
        InputError, match="nobody: no such model or pipeline; there are digit_reader"
    ):
        station.loads.start(LoadPlan("nobody"), author="ada")
    assert station.store.runs(limit=100) == before


def test_the_default_load_is_a_share_of_what_was_measured_here(station: Station) -> None:
    plan = station.loads.default_plan()
    assert (plan.target, plan.kind, plan.seconds) == ("digit_reader", "poisson", None)
    assert plan.rate_hz > 10
    assert station.loads.default_plan() == plan
