"""Bad input: one line that says what to do, and nothing else is disturbed."""

from __future__ import annotations

import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from engine.errors import EngineError, Refused, StoreError
from engine.policy import Policy
from ops.cli import main
from ops.machine import ROOT
from ops.models import Catalog
from ops.station import Station
from storage import Store
from tests.ops.bad_calls import CALLS, DIGIT
from tests.ops.conftest import DEVICES


def still_works(station: Station) -> bool:
    """Tell whether the station answers and its policy is what it was."""
    output = np.asarray(station.engine.infer("digit_reader", DIGIT))
    return output.shape[0] == 1


def one_line(error: EngineError) -> str:
    text = str(error)
    assert text
    assert "\n" not in text
    return text


@pytest.mark.parametrize("name", CALLS)
def test_a_bad_call_is_one_line_and_changes_nothing(station: Station, name: str) -> None:
    act, kind, text = CALLS[name]
    policy, runs = station.engine.policy, station.store.runs(limit=100)
    with pytest.raises(kind) as caught:
        act(station)
    assert text in one_line(caught.value)
    assert station.engine.policy == policy
    assert station.store.runs(limit=100) == runs
    assert still_works(station)


def test_a_full_queue_refuses_at_once_and_names_the_limit(station: Station) -> None:
    policy = station.engine.policy
    tight = policy.replace(
        admission={"queue_items": 4},
        models={
            "digit_reader": {"low": 64, "high": 64, "timeout_ms": 60_000, "fill": "patient"}
        },
    )
    station.apply(tight, author="ada", reason="tight", expected_version=policy.version)
    waiting = [station.engine.submit("digit_reader", DIGIT) for _ in range(4)]
    with pytest.raises(Refused) as caught:
        station.engine.submit("digit_reader", DIGIT)
    assert "queue_items" in one_line(caught.value)
    assert (caught.value.wanted, caught.value.limit) == (1, "admission.queue_items")
    station.apply(
        policy, author="ada", reason="back", expected_version=station.engine.policy.version
    )
    assert all(np.asarray(future.result(30)).shape[0] == 1 for future in waiting)
    assert still_works(station)


def test_a_store_that_cannot_be_read_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "letters.db"
    path.write_text("this is a letter and no database at all, however long it may be")
    before = path.read_bytes()
    assert main(["runs", "list", "--store", str(path)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "letters.db" in said
    with pytest.raises(StoreError) as caught:
        Station.open(store=f"sqlite:///{path}", devices=DEVICES)
    one_line(caught.value)
    assert path.read_bytes() == before


def test_a_store_of_somebody_elses_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "foreign.db"
    with sqlite3.connect(path) as foreign:
        foreign.execute("CREATE TABLE runs (mine TEXT)")
    foreign.close()
    with pytest.raises(StoreError) as caught:
        Store.open(f"sqlite:///{path}")
    one_line(caught.value)


OWNER = """
import sys
from storage import Store
with Store.open(sys.argv[1]):
    print("owned", flush=True)
    sys.stdin.readline()
"""


def test_a_store_that_another_process_owns_is_one_line_with_its_pid(
    tmp_path: Path, catalog: Catalog, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path}/owned.db"
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, url],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "owned\n"
        with pytest.raises(StoreError) as caught:
            Station.open(store=url, devices=DEVICES, models=catalog)
        assert str(owner.pid) in one_line(caught.value)
        (tmp_path / "p.toml").write_text(Policy().replace(default={"high": 3}).to_toml())
        assert main(["policy", "apply", str(tmp_path / "p.toml"), "--store", url]) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert str(owner.pid) in said
        assert main(["runs", "list", "--store", url]) == 0
        owner.communicate("\n")
    Station.open(store=url, devices=DEVICES, models=catalog).close()


def test_a_port_in_use_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        arguments = ["run", "--port", str(port), "--store", f"{tmp_path}/run.db"]
        assert main(arguments) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"port {port} is in use: stop the server there, or choose another" in said
    assert not (tmp_path / "run.db").exists()


LINES = [
    (["load", "--model", "nobody"], "nobody: no such model or pipeline; there are ocr"),
    (["load", "--model", "digit_reader", "--rate", "-1"], "rate_hz: found -1.0"),
    (["load", "--model", "x", "--models", "nowhere"], "nowhere: no such module"),
    (
        ["load", "--model", "digit_reader", "--devices", "gpu"],
        "devices: found 'gpu', wanted one of auto, cpu",
    ),
    (["simulate", "nowhere.json"], "nowhere.json"),
    (["policy", "apply", "nowhere.toml"], "nowhere.toml: cannot be read"),
    (["run", "--port", "70000"], "port: found 70000, wanted 1 to 65535"),
    (["run", "--models", "nowhere"], "nowhere: no such module"),
    (["run", "--devices", "gpu"], "devices: found 'gpu'"),
]


@pytest.mark.parametrize(("arguments", "text"), LINES, ids=[" ".join(a) for a, _ in LINES])
def test_a_bad_command_is_one_line_and_status_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], text: str
) -> None:
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    last = said.err.splitlines()[-1]
    assert last.startswith(f"millpond {arguments[0]}: ")
    assert text in last
    assert "Traceback" not in said.err


@pytest.mark.parametrize(
    "arguments", [["lod"], ["load"], ["load", "--model", "a", "--rate", "x"]]
)
def test_a_word_that_is_no_command_is_one_line_and_status_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("low = ", "not TOML"),
        ("[default]\nlow = nan", "default.low"),
        ("[default]\nlow = 9\nhigh = 4", "low (9) is above high (4)"),
        ("[default]\nhihg = 4", "default.hihg"),
    ],
)
def test_a_policy_file_with_a_mistake_names_the_field_and_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    url = f"sqlite:///{tmp_path}/p.db"
    Store.open(url).close()
    (tmp_path / "p.toml").write_text(text)
    assert main(["policy", "apply", str(tmp_path / "p.toml"), "--store", url]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert message in said
    with Store.open(url, read_only=True) as store:
        assert store.policies(limit=10) == ()
