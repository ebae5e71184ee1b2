"""Notebooks: every runbook runs from its first cell to its last, as the dashboard runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ops.machine import ROOT
from ops.notebook_files import find_runbooks
from ops.runbooks import Runbooks
from tests.ops.test_runbooks import FakeKeeper

PATIENCE_S = 170.0
SHORT: dict[str, dict[str, object]] = {"00_start_here": {"seconds": 2.0}}
NAMES = [runbook.name for runbook in find_runbooks(ROOT / "notebooks")]


def printed(executed: Path) -> str:
    """Return all that the cells printed."""
    cells = json.loads(executed.read_text(encoding="utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    return "".join("".join(output.get("text", [])) for output in outputs)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_to_its_end_and_draws_its_report(name: str, tmp_path: Path) -> None:
    runbooks = Runbooks(
        ROOT / "notebooks", tmp_path, keeper=FakeKeeper(), now_ms=lambda: 0, limit_s=PATIENCE_S
    )
    job = runbooks.wait(runbooks.start(name, parameters=SHORT.get(name), author="test"))
    assert (job.state, job.error) == ("finished", "")
    assert job.report is not None
    assert "Plotly" in job.report.read_text(encoding="utf-8")


def test_the_first_notebook_shows_an_answer_a_load_and_the_effect_of_an_edit(
    tmp_path: Path,
) -> None:
    runbooks = Runbooks(
        ROOT / "notebooks", tmp_path, keeper=FakeKeeper(), now_ms=lambda: 0, limit_s=PATIENCE_S
    )
    start = runbooks.start("00_start_here", parameters={"seconds": 2.0}, author="test")
    job = runbooks.wait(start)
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
