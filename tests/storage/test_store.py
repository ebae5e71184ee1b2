"""The store's contract, in memory and on disk, and what happens when things go wrong."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from engine.decisions import Decision, Kind, Reason
from engine.errors import StoreError
from engine.metrics import LatencyHistogram
from engine.policy import Policy
from storage import Store
from storage.exports import export_bytes, export_run
from storage.samples import DecisionRecord, DeviceSample, ModelSample, NewRun

SECOND = 1000


def device(at_ms: int, *, free: int = 50) -> DeviceSample:
    return DeviceSample(
        at_ms, "cpu:0", 100, 10, 20, 30, free, free, 0.0, 0.0, 0.0, 0.5, 1, 0, 0
    )


def model(at_ms: int, *, latency_ns: int = 1_000_000) -> ModelSample:
    histogram = LatencyHistogram()
    histogram.record(latency_ns)
    packed = histogram.to_bytes()
    return ModelSample(
        at_ms, "a", 1, 1, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 2, 1, packed, packed, packed
    )


def decision(at_ms: int) -> DecisionRecord:
    made = Decision(1, 5, Kind.EVICT, Reason.LRU, "a", "cpu:0", 3, (("bytes", 7),))
    return DecisionRecord(at_ms, made)


def fill(store: Store, seconds: int) -> None:
    for second in range(1, seconds + 1):
        at_ms = second * SECOND
        spike = second == seconds // 2
        store.append(
            [device(at_ms, free=0 if spike else 50)],
            [model(at_ms)],
            decisions=[decision(at_ms)],
        )
    store.flush()


def new_run(at_ms: int = SECOND) -> NewRun:
    return NewRun("small", "load", at_ms, 0, "ada", load="{}")


@pytest.fixture(params=["memory", "disk"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    in_memory = request.param == "memory"
    with Store.open(
        "sqlite:///:memory:" if in_memory else f"sqlite:///{tmp_path}/a.db"
    ) as made:
        yield made


def test_what_was_flushed_can_be_read(store: Store):
    fill(store, 3)
    assert store.device_series(0, 10_000) == tuple(
        device(n * SECOND, free=50 if n != 1 else 0) for n in (1, 2, 3)
    )
    assert [sample.at_ms for sample in store.model_series(0, 10_000)] == [1000, 2000, 3000]
    found = store.decisions(0, 10_000, limit=2)
    assert [record.at_ms for record in found] == [3000, 2000]
    assert found[0].decision == decision(0).decision
    assert store.decisions(0, 10_000, text="cpu:0", kinds=[Kind.LOAD]) == ()


def test_a_spike_survives_thinning_and_counts_add_up(store: Store):
    fill(store, 200)
    thin = store.device_series(0, 201 * SECOND, points=10)
    assert len(thin) < 60
    assert max(sample.utilisation for sample in thin) == 1.0
    merged = store.model_series(0, 201 * SECOND, points=10)
    assert sum(sample.completed for sample in merged) == 200
    assert LatencyHistogram.from_bytes(merged[1].latency).count == merged[1].completed


def test_a_policy_comes_back_with_its_difference(store: Store):
    first = Policy()
    second = first.replace(models={"a": {"high": 3}}).model_copy(update={"version": 1})
    store.save_policy(first, author="start", reason="new", at_ms=1)
    store.save_policy(second, author="ada", reason="smaller", at_ms=2)
    assert store.last_policy() == second
    assert store.policy(0) == first
    assert ("models.a.high", "none", "3") in store.policies(limit=1)[0].diff
    with pytest.raises(StoreError, match="no policy version 7"):
        store.policy(7)


def test_a_version_that_is_there_already_is_refused_and_changes_nothing(store: Store):
    store.save_policy(Policy(), author="a", reason="", at_ms=1)
    with pytest.raises(StoreError):
        store.save_policy(Policy(), author="b", reason="", at_ms=2)
    assert [record.author for record in store.policies()] == ["a"]


def test_a_run_has_a_beginning_and_an_end(store: Store):
    run_id = store.start_run(new_run())
    assert store.run(run_id).state == "open"
    store.finish_run(run_id, state="finished", summary={"goodput_hz": 2.5}, at_ms=9000)
    assert store.run(run_id).summary == {"goodput_hz": 2.5}
    store.delete_run(run_id)
    for call in (
        lambda: store.run(run_id),
        lambda: store.delete_run(run_id),
        lambda: store.finish_run(run_id, state="failed", summary={}, at_ms=1),
    ):
        with pytest.raises(StoreError, match=f"no run {run_id}"):
            call()


def test_a_second_that_is_there_already_does_not_stop_the_writer(store: Store):
    store.append([device(1000)], [], decisions=[])
    store.append([device(1000), device(2000)], [], decisions=[])
    store.flush()
    assert len(store.device_series(0, 5000)) == 2


def test_a_row_that_cannot_be_written_does_not_stop_the_writer(store: Store):
    store.append([device(1 << 70)], [], decisions=[])
    with pytest.raises(StoreError):
        store.flush()
    assert not store.health()[0]
    run_id = store.start_run(new_run())
    assert store.run(run_id).state == "open"


def test_old_rows_are_pruned(store: Store):
    fill(store, 20)
    assert store.prune(25 * SECOND, keep_s=10) == 3 * 14
    assert store.device_series(0, 30_000)[0].at_ms == 15_000


def test_an_open_run_is_exported_second_by_second(store: Store, tmp_path: Path):
    fill(store, 50)
    run_id = store.start_run(new_run())
    document = json.loads(export_bytes(store, run_id, file_format="json")[1])
    assert [len(document[name]) for name in ("devices", "models", "decisions")] == [50] * 3
    archive = zipfile.ZipFile(io.BytesIO(export_bytes(store, run_id, file_format="csv")[1]))
    name = next(name for name in archive.namelist() if "models" in name)
    rows = list(csv.DictReader(io.StringIO(archive.read(name).decode())))
    assert float(rows[0]["latency_p50_ms"]) == pytest.approx(1.0, rel=0.07)
    paths = export_run(store, run_id, folder=tmp_path / "out", file_format="parquet")
    tables = {path.stem: pq.read_table(path) for path in paths if path.suffix == ".parquet"}
    assert tables[f"run-{run_id}-devices"].num_rows == 50


def test_a_closed_store_says_so(tmp_path: Path):
    store = Store.open(f"sqlite:///{tmp_path}/a.db")
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.flush()


HOLD = """
import sys
from storage import Store
from storage.samples import NewRun
from tests.storage.test_store import fill
store = Store.open(sys.argv[1])
store.start_run(NewRun("small", "load", 1000, 0, "ada"))
fill(store, 5)
print("ready", flush=True)
sys.stdin.read()
"""


def test_a_killed_owner_loses_nothing_that_was_flushed_and_its_run_is_interrupted(
    tmp_path: Path,
):
    url = f"sqlite:///{tmp_path}/a.db"
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, url],
        cwd=root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "ready\n"
        with pytest.raises(StoreError, match=f"in use by process {owner.pid}"):
            Store.open(url)
        with Store.open(url, read_only=True) as reader:
            assert len(reader.device_series(0, 10_000)) == 5
            with pytest.raises(StoreError, match="read-only"):
                reader.flush()
        owner.kill()
    with Store.open(url) as again:
        assert len(again.device_series(0, 10_000)) == 5
        assert [(run.state, run.ended_ms) for run in again.runs()] == [("interrupted", 5000)]


def test_what_is_not_a_store_is_refused_in_one_line_and_left_as_it_is(tmp_path: Path):
    (tmp_path / "garbage.db").write_text("garbage " * 100)
    (tmp_path / "folder.db").mkdir()
    with sqlite3.connect(tmp_path / "foreign.db") as foreign:
        foreign.execute("CREATE TABLE customers (id INTEGER)")
    foreign.close()
    before = (tmp_path / "foreign.db").read_bytes()
    Store.open(f"sqlite:///{tmp_path}/newer.db").close()
    with sqlite3.connect(tmp_path / "newer.db") as newer:
        newer.execute("UPDATE alembic_version SET version_num = '9999'")
    newer.close()
    cases = {
        f"sqlite:///{tmp_path}/garbage.db": "not a database",
        f"sqlite:///{tmp_path}/folder.db": "a folder",
        f"sqlite:///{tmp_path}/none/a.db": "no such folder",
        f"sqlite:///{tmp_path}/foreign.db": "something else",
        f"sqlite:///{tmp_path}/newer.db": "newer release",
        "nonsense": "not a store",
        "nosuch://host/db": "cannot be opened",
    }
    for url, message in cases.items():
        with pytest.raises(StoreError, match=message) as caught:
            Store.open(url)
        assert "\n" not in str(caught.value)
    assert (tmp_path / "foreign.db").read_bytes() == before
