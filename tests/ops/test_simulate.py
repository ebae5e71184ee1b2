"""Simulate: a scenario file in, figures and a decision log out, errors in one line."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest

from engine.errors import InputError, PolicyError
from ops.simulate import simulate_file
from tests.simulation.scenarios import model, scenario


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a small scenario's file."""
    file = tmp_path / "small.json"
    file.write_text(json.dumps(scenario([model("a")], rate_hz=200)))
    return file


def test_a_file_is_simulated_and_its_decisions_have_the_reported_hash(path: Path):
    log = path.with_suffix(".log")
    report = simulate_file(path, decisions=log)
    assert report["decision_log_sha256"] == sha256(log.read_bytes()).hexdigest()
    assert report == simulate_file(path) | {"wall_s": report["wall_s"]}


def test_changes_are_applied(path: Path):
    report = simulate_file(path)
    doubled = simulate_file(path, rate_scale=2)
    assert doubled["offered_hz"] == pytest.approx(2 * report["offered_hz"], rel=0.2)
    for changed in (
        simulate_file(path, seed=8),
        simulate_file(path, settings=["models.a.high=1", "models.a.low=1"]),
    ):
        assert changed["decision_log_sha256"] != report["decision_log_sha256"]


def test_wrong_input_is_refused_in_one_line(path: Path):
    for wrong in ({"rate_scale": -1}, {"seed": -1}, {"decisions": path.parent / "no" / "log"}):
        with pytest.raises(InputError) as found:
            simulate_file(path, **wrong)
        assert "\n" not in str(found.value)
    with pytest.raises(PolicyError, match=r"placement\.policy"):
        simulate_file(path, settings=["placement.policy=magic"])
