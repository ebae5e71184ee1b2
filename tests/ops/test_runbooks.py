"""Runbooks: notebooks in child processes, with progress, reports, limits and an end."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

import psutil
import pytest

from engine.errors import InputError
from ops.runbooks import Runbooks

PATIENCE_S = 120.0
QUICK = ("print(1 + 1)", "print(word)")
ENDLESS = ("print('begun')", "import threading; threading.Event().wait()")


class FakeKeeper:
    """Remember runs instead of storing them."""

    def __init__(self) -> None:
        self.runs: dict[int, str] = {}
        self.summaries: dict[int, dict[str, float]] = {}
        self._ids = count(1)

    def open_run(self, name: str, *, kind: str, load: str, author: str) -> int:
        run_id = next(self._ids)
        self.runs[run_id] = f"open {name} {kind} {load} {author}"
        return run_id

    def close_run(self, run_id: int, *, state: str, summary: dict[str, float]) -> None:
        self.runs[run_id] = state
        self.summaries[run_id] = summary


def write(path: Path, *cells: str) -> None:
    """Write a notebook whose parameters cell sets `word`."""
    sources = [("word = 'hello'", ["parameters"]), *((cell, []) for cell in cells)]
    document = {
        "cells": [
            {
                "cell_type": "code",
                "id": f"cell{number}",
                "metadata": {"tags": tags},
                "source": source,
                "outputs": [],
                "execution_count": None,
            }
            for number, (source, tags) in enumerate(sources)
        ],
        "metadata": {
            "kernelspec": {"name": "python3", "display_name": "x", "language": "python"}
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path.write_text(json.dumps(document))


def runbooks(
    folder: Path, *cells: str, limit_s: float = PATIENCE_S
) -> tuple[Runbooks, FakeKeeper]:
    write(folder / "one.ipynb", *cells)
    keeper = FakeKeeper()
    made = Runbooks(
        folder, folder / "reports", keeper=keeper, now_ms=lambda: 1000, limit_s=limit_s
    )
    return made, keeper


def wait_for_cells(made: Runbooks, job_id: int, cells: int) -> None:
    """Wait until so many cells are through: the child's lines come when they come."""
    child = made._jobs[job_id].child
    while child.cells_done < cells and child.is_running:
        made.wait(job_id, 0.05)


def test_a_notebook_runs_with_its_parameters_and_leaves_a_report(tmp_path: Path) -> None:
    made, keeper = runbooks(tmp_path, *QUICK)
    job_id = made.start("one", parameters={"word": "ahoy"}, author="ada")
    assert keeper.runs[1] == 'open one notebook {"word": "ahoy"} ada'
    job = made.wait(job_id, PATIENCE_S)
    assert (job.state, job.error, job.cells_done, job.cells_total) == ("finished", "", 4, 4)
    assert job.report is not None
    assert job.report.parent == made.folder
    assert "ahoy" in job.report.read_text(encoding="utf-8")
    assert keeper.runs[1] == "finished"
    assert keeper.summaries[1]["cells_done"] == 4


def test_a_cell_that_fails_ends_the_job_with_its_error_and_the_report_so_far(
    tmp_path: Path,
) -> None:
    made, keeper = runbooks(tmp_path, "print('before')", "raise ValueError('too hot')", "1")
    job = made.wait(made.start("one", author="ada"), PATIENCE_S)
    assert (job.state, job.error) == ("failed", "ValueError: too hot")
    assert job.cells_done == 2
    assert job.report is not None
    assert "before" in job.report.read_text(encoding="utf-8")
    assert keeper.runs[1] == "failed"


def test_a_cancelled_notebook_leaves_no_process_behind(tmp_path: Path) -> None:
    made, keeper = runbooks(tmp_path, *ENDLESS)
    job_id = made.start("one", author="ada")
    wait_for_cells(made, job_id, 2)
    child = psutil.Process(made._jobs[job_id].child._process.pid)
    family = [child, *child.children(recursive=True)]
    assert len(family) > 1
    made.cancel(job_id)
    job = made.wait(job_id, PATIENCE_S)
    assert (job.state, job.error) == ("cancelled", "cancelled")
    _, alive = psutil.wait_procs(family, timeout=PATIENCE_S)
    assert not alive
    assert keeper.runs[1] == "interrupted"


def test_a_notebook_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    made, _ = runbooks(tmp_path, *ENDLESS, limit_s=0.2)
    job = made.wait(made.start("one", author="ada"), PATIENCE_S)
    assert (job.state, job.error) == ("failed", "took longer than 0.2 s")


def test_what_is_wrong_is_said_before_anything_starts(tmp_path: Path) -> None:
    made, keeper = runbooks(tmp_path, *QUICK)
    with pytest.raises(InputError, match="two: no such notebook; there are one"):
        made.start("two", author="ada")
    with pytest.raises(InputError, match="one: wrod: no such parameter; there are word"):
        made.start("one", parameters={"wrod": 1}, author="ada")
    with pytest.raises(InputError, match="job 7: there is none of that number"):
        made.cancel(7)
    assert keeper.runs == {}
    assert made.jobs() == ()


def test_a_third_notebook_waits_for_its_user_and_a_close_ends_the_others(
    tmp_path: Path,
) -> None:
    made, keeper = runbooks(tmp_path, *ENDLESS)
    for _ in range(2):
        made.start("one", author="ada")
    with pytest.raises(InputError, match="2 notebooks are running; wait or cancel one"):
        made.start("one", author="ada")
    made.close()
    assert [job.state for job in made.jobs()] == ["cancelled", "cancelled"]
    assert set(keeper.runs.values()) == {"interrupted"}
