"""Station: everything that a page or a notebook does, through one object."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.errors import EngineError, InputError
from engine.load.plan import LoadPlan
from engine.policy import Policy
from ops.models import Catalog
from ops.station import Station
from tests.ops.conftest import DEVICES


def url(folder: Path) -> str:
    return f"sqlite:///{folder}/own.db"


def test_a_station_answers_samples_itself_and_keeps_what_it_saw(station: Station) -> None:
    spec = station.engine.models["digit_reader"]
    sample = spec.inputs(3)
    output = np.asarray(station.engine.infer("digit_reader", sample.payload))
    assert output.argmax(1) == sample.truth
    station.flush()
    now_ms = station.recent.models()[-1].at_ms
    stored = station.store.model_series(now_ms - 60_000, now_ms + 1)
    assert sum(row.completed for row in stored) >= 1
    assert station.recent.devices()[-1].resident_bytes > 0
    assert "load" in [mark.kind for mark in station.recent.marks()]
    decisions = station.store.decisions(now_ms - 60_000, now_ms + 1, limit=100)
    assert "load" in [record.decision.kind for record in decisions]


def test_an_applied_policy_is_stored_before_it_counts_and_marked_on_charts(
    station: Station,
) -> None:
    before = station.engine.policy
    change = before.replace(models={"digit_reader": {"high": 8}})
    version = station.apply(
        change, author="ada", reason="smaller batches", expected_version=before.version
    )
    record = station.store.policies(limit=1)[0]
    assert (record.version, record.author, record.reason) == (version, "ada", "smaller batches")
    assert station.store.policy(version).model("digit_reader").high == 8
    station.flush()
    marks = [mark for mark in station.recent.marks() if mark.kind == "policy"]
    assert marks[-1].text == f"v{version} ada: smaller batches"


def test_a_recorded_load_is_a_run_with_its_figures(station: Station, tmp_path: Path) -> None:
    plan = LoadPlan("digit_reader", rate_hz=50, seconds=1, seed=1)
    with station.record(load=plan, name="short") as run_id:
        pass
    run = station.store.run(run_id)
    assert (run.name, run.kind, run.state) == ("short", "load", "finished")
    assert run.summary["completed"] == run.summary["offered"] > 40
    assert run.summary["accuracy"] > 0.9
    assert LoadPlan.from_json(run.load) == plan
    assert "cpu:0" in run.hardware
    assert station.export(run_id, tmp_path / "out", format="json")


def test_a_recording_without_load_is_a_run_and_fails_with_its_block(station: Station) -> None:
    with station.record(name="by hand") as run_id:
        pass
    assert station.store.run(run_id).state == "finished"
    with pytest.raises(RuntimeError), station.record(name="broken") as run_id:
        raise RuntimeError
    assert station.store.run(run_id).state == "failed"


def test_a_model_that_cannot_be_built_is_listed_and_the_others_work(
    catalog: Catalog, tmp_path: Path
) -> None:
    (good,) = catalog.models

    def explode() -> object:
        raise OSError("its file is gone")

    absent = replace(good, name="absent", missing="weights missing: run `fetch`")
    broken = replace(good, name="broken", build=explode)
    lines: list[str] = []
    with Station.open(
        store=url(tmp_path),
        devices=DEVICES,
        models=Catalog((absent, broken, good), ()),
        progress=lines.append,
    ) as station:
        assert list(station.engine.models) == ["digit_reader"]
        assert station.missing["absent"] == "weights missing: run `fetch`"
        assert "its file is gone" in station.missing["broken"]
        with pytest.raises(InputError, match="absent: weights missing: run `fetch`"):
            station.loads.start(LoadPlan("absent"), author="ada")
    assert any("building digit_reader (3 of 3)" in line for line in lines)


def test_the_next_station_starts_under_the_last_policy(
    catalog: Catalog, tmp_path: Path
) -> None:
    for expected in (0, 1):
        with Station.open(store=url(tmp_path), devices=DEVICES, models=catalog) as station:
            assert station.engine.policy.version == expected
            station.apply(
                station.engine.policy.replace(default={"high": 4 + expected}),
                author="ada",
                reason="next",
                expected_version=expected,
            )
    with Station.open(
        store=url(tmp_path), devices=DEVICES, models=catalog, policy=Policy()
    ) as station:
        assert (station.engine.policy.version, station.engine.policy.default.high) == (3, 16)


def test_a_start_that_fails_gives_the_store_back(catalog: Catalog, tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(InputError, match="devices: found 'gpu:1'"):
            Station.open(store=url(tmp_path), devices="gpu:1", models=catalog)
    with Station.open(store=url(tmp_path), devices=DEVICES, models=catalog) as station:
        station.close()
        station.close()


def test_progress_can_call_a_start_off(catalog: Catalog, tmp_path: Path) -> None:
    def refuse(line: str) -> None:
        if line.startswith("building"):
            raise InputError("enough")

    with pytest.raises(EngineError, match="enough"):
        Station.open(store=url(tmp_path), devices=DEVICES, models=catalog, progress=refuse)
    Station.open(store=url(tmp_path), devices=DEVICES, models=catalog).close()
