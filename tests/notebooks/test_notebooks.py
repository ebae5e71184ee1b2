"""Notebooks: every runbook runs from its first cell to its last, as the dashboard runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ops.machine import ROOT
from ops.notebook_files import find_runbooks
from ops.runbooks import RunbookJob, Runbooks
from tests.ops.test_runbooks import FakeKeeper

LIMIT_S = 170.0  # less than a test may take
SHORT: dict[str, dict[str, object]] = {"00_start_here": {"seconds": 2.0}}
NAMES = [runbook.name for runbook in find_runbooks(ROOT / "notebooks")]


def printed(executed: Path) -> str:
    """Return all that the cells printed."""
    cells = json.loads(executed.read_text(encoding="utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    return "".join("".join(output.get("text", [])) for output in outputs)


class Results:
    """Run each notebook once, for all tests that look at it."""

    def __init__(self, folder: Path) -> None:
        self.runbooks = Runbooks(
            ROOT / "notebooks", folder, keeper=FakeKeeper(), now_ms=lambda: 0, limit_s=LIMIT_S
        )
        self._jobs: dict[str, RunbookJob] = {}

    def __getitem__(self, name: str) -> RunbookJob:
        if name not in self._jobs:
            started = self.runbooks.start(name, parameters=SHORT.get(name), author="test")
            self._jobs[name] = self.runbooks.wait(started)
        return self._jobs[name]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return Results(tmp_path_factory.mktemp("reports"))


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_to_its_end_and_draws_its_report(name: str, results: Results) -> None:
    job = results[name]
    assert (job.state, job.error) == ("finished", "")
    assert job.cells_done == job.cells_total
    assert job.report is not None
    assert "Plotly" in job.report.read_text(encoding="utf-8")


def test_the_first_notebook_shows_an_answer_a_load_and_the_effect_of_an_edit(
    results: Results,
) -> None:
    job = results["00_start_here"]
    assert job.report is not None, job.error
    text = printed(job.report.with_suffix(".ipynb"))
    assert "failed 0" in text
    assert "policy version 1" in text
    rows = {line[:24].strip(): line[24:].split() for line in text.splitlines()}
    eager, patient = map(float, rows["items per batch"])
    assert patient > 2 * eager
    before_ms, after_ms = map(float, rows["latency p50, ms"])
    assert after_ms > before_ms
    assert "eager (finished)" in text


def test_a_notebook_is_committed_without_outputs() -> None:
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            assert not cell.get("outputs"), f"{path.name}: clear its outputs before a commit"
