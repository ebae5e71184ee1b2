"""Notebook files: title and parameters of runbooks, and what parameters are accepted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.errors import InputError
from ops.notebook_files import checked, find_runbooks


def write(path: Path, *cells: dict[str, object]) -> None:
    path.write_text(json.dumps({"cells": list(cells), "nbformat": 4, "nbformat_minor": 5}))


def a_notebook(folder: Path) -> None:
    write(
        folder / "one.ipynb",
        {"cell_type": "markdown", "metadata": {}, "source": ["# First steps\n", "more"]},
        {
            "cell_type": "code",
            "metadata": {"tags": ["parameters"]},
            "source": "rate_hz = 20.0\nname = 'x'\ncount = 3\nseeds = [1, 2]\n",
        },
        {"cell_type": "markdown", "metadata": {}, "source": "# Not this one"},
    )


def test_title_and_parameters_are_read_without_running_anything(tmp_path: Path) -> None:
    a_notebook(tmp_path)
    (runbook,) = find_runbooks(tmp_path)
    assert (runbook.name, runbook.title) == ("one", "First steps")
    assert dict(runbook.parameters) == {"rate_hz": 20.0, "name": "x", "count": 3}


def test_a_file_that_is_no_notebook_is_left_out(tmp_path: Path) -> None:
    a_notebook(tmp_path)
    (tmp_path / "bad.ipynb").write_text("{")
    write(tmp_path / "worse.ipynb", {"cell_type": "code"})
    assert [runbook.name for runbook in find_runbooks(tmp_path)] == ["one"]
    assert find_runbooks(tmp_path / "nowhere") == ()


def test_parameters_are_checked_against_the_defaults(tmp_path: Path) -> None:
    a_notebook(tmp_path)
    (runbook,) = find_runbooks(tmp_path)
    assert checked(runbook, {"rate_hz": 5}) == {"rate_hz": 5}
    with pytest.raises(InputError, match=r"one: rate: no such parameter; there are rate_hz"):
        checked(runbook, {"rate": 5})
    with pytest.raises(InputError, match=r"found 'fast', wanted a value like 20.0"):
        checked(runbook, {"rate_hz": "fast"})
    with pytest.raises(InputError, match=r"found True, wanted a value like 3"):
        checked(runbook, {"count": True})
