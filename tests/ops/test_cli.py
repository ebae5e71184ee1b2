"""The command: what it prints, to whom, and what it leaves behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.policy import Policy
from ops.cli import main
from ops.commands.run import command
from ops.options import Options
from storage import Store

LOAD = ["load", "--model", "digit_reader", "--devices", "cpu:1x64MiB", "--seed", "3"]


def answer(capsys: pytest.CaptureFixture[str]) -> object:
    """Return the one JSON object on stdout."""
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1
    return json.loads(lines[0])


def test_a_load_reports_its_figures_as_one_json_object(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([*LOAD, "--rate", "50", "--seconds", "1", "--json", "-"]) == 0
    found = answer(capsys)
    assert isinstance(found, dict)
    assert found["completed"] == found["offered"] > 40
    assert (found["failed"], found["refused"], found["expired"]) == (0, 0, 0)
    assert found["accuracy"] > 0.9
    assert (
        found["latency_ms"]["p50"] <= found["latency_ms"]["p99"] <= found["latency_ms"]["max"]
    )
    assert found["offered_hz"] == pytest.approx(50, rel=0.1)
    assert found["is_valid"] is True


def test_a_load_with_a_store_is_listed_shown_exported_and_deleted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    store = ["--store", f"{tmp_path}/kept.db"]
    assert main([*LOAD, *store, "--rate", "50", "--seconds", "1", "--json", "-"]) == 0
    capsys.readouterr()

    assert main(["runs", "list", *store, "--json", "-"]) == 0
    listed = answer(capsys)
    assert isinstance(listed, list)
    (run,) = listed
    assert (run["kind"], run["state"]) == ("load", "finished")

    number = str(run["id"])
    assert main(["runs", "show", number, *store]) == 0
    assert "accuracy: " in capsys.readouterr().out

    for kind in ("csv", "parquet", "json"):
        folder = tmp_path / kind
        assert (
            main(["runs", "export", number, *store, "--to", str(folder), "--format", kind]) == 0
        )
        paths = [Path(line) for line in capsys.readouterr().out.splitlines()]
        assert paths
        assert all(path.stat().st_size > 0 for path in paths)

    assert main(["runs", "delete", number, *store]) == 0
    capsys.readouterr()
    assert main(["runs", "list", *store]) == 0
    assert "no runs yet" in capsys.readouterr().out


def test_a_policy_is_applied_from_a_file_listed_compared_and_shown(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/p.db"
    with Store.open(url) as store:
        store.save_policy(Policy(), author="start", reason="new", at_ms=1)
    file = tmp_path / "policy.toml"
    file.write_text(Policy().replace(default={"high": 8}).to_toml())
    apply = ["policy", "apply", str(file), "--store", url, "--author", "ada"]
    assert main([*apply, "--json", "-"]) == 0
    assert answer(capsys) == {"version": 1, "changed": ["default.high"]}
    assert main([*apply, "--json", "-"]) == 0
    assert answer(capsys) == {"version": None, "changed": []}

    assert main(["policy", "list", "--store", url]) == 0
    assert "ada" in capsys.readouterr().out
    assert main(["policy", "diff", "0", "1", "--store", url]) == 0
    assert capsys.readouterr().out == "default.high: 16 -> 8\n"
    assert main(["policy", "show", "--store", url]) == 0
    shown = capsys.readouterr().out
    assert Policy.from_toml(shown).default.high == 8


def test_the_doctor_says_what_is_here_and_what_to_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["doctor", "--store", f"{tmp_path}/none.db", "--json", "-"]) == 0
    found = answer(capsys)
    assert isinstance(found, dict)
    findings = {one["name"]: one for one in found["findings"]}
    assert found["is_well"] is True
    assert findings["torch"]["is_ok"]
    assert findings["model digit_reader"]["is_ok"]
    assert findings["store"]["text"].endswith("`millpond run` makes it")
    ocr = findings["model ocr"]
    assert ocr["is_ok"] or "sample_models.fetch" in ocr["todo"]
    assert not (tmp_path / "none.db").exists()


def test_run_becomes_the_server_with_the_options_behind_two_dashes() -> None:
    words = command(Options("sqlite:////var/x.db", "cpu:2", ("a", "b")), 8600)
    assert words[1:5] == ["-m", "streamlit", "run", "app.py"]
    assert words[5:8] == ["--server.port", "8600", "--"]
    assert words[8:] == [
        "--store",
        "sqlite:////var/x.db",
        "--devices",
        "cpu:2",
        "--models",
        "a,b",
    ]
