"""The committed settings that others depend on, and the promises of the test set-up."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
SKIPPING = """
import pytest

@pytest.mark.browser
def test_a_page():
    pytest.skip("no browser")
"""


def dashboard() -> dict[str, Any]:  # a TOML table holds what it likes
    """Return the dashboard's settings as Streamlit reads them."""
    return tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))


def test_no_full_collection_runs_after_a_refresh() -> None:
    assert dashboard()["runner"]["postScriptGC"] is False


def test_a_saved_file_does_not_restart_the_engine() -> None:
    assert dashboard()["server"]["fileWatcherType"] == "none"


def test_the_dashboard_is_reachable_from_this_machine_only() -> None:
    assert dashboard()["server"]["address"] == "127.0.0.1"


def test_nothing_is_reported_to_others() -> None:
    assert dashboard()["browser"]["gatherUsageStats"] is False


def test_the_viewer_can_choose_between_light_and_dark() -> None:
    theme = dashboard()["theme"]
    assert theme["light"]["primaryColor"] != theme["dark"]["primaryColor"]
    assert len(set(theme["light"]["chartCategoricalColors"])) == 8
    assert set(theme["light"]["chartCategoricalColors"]) == set(
        theme["dark"]["chartCategoricalColors"]
    )


def test_every_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    ranges = [line for group in (project["dependencies"], *extras) for line in group]
    wanted = {_name(line.split("[")[0].split(">")[0]) for line in ranges}
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {_name(line.split("==")[0]) for line in lines if "==" in line}
    assert wanted - pinned == set()


@pytest.mark.parametrize(("ci", "outcome"), [("true", "1 failed"), ("", "1 skipped")])
def test_a_skipped_browser_test_is_a_failure_in_ci_only(
    tmp_path: Path, ci: str, outcome: str
) -> None:
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "test_skipping.py").write_text(SKIPPING)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        env=os.environ | {"CI": ci},
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome in ran.stdout


def _name(text: str) -> str:
    return text.strip().lower().replace("_", "-")
