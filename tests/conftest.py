"""What all tests share: no noise from Streamlit, markers for browser and GPU, deep soaks."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

# Pages run without a browser in tests, which Streamlit finds worth a line each time.
logging.getLogger("streamlit.runtime.scriptrunner_utils.script_run_context").setLevel("ERROR")

# Times are those of a shared machine: no deadline, and slow data is no fault of the test.
settings.register_profile(
    "default", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("soak", settings.get_profile("default"), max_examples=5000)
settings.load_profile("default")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what this machine cannot do."""
    if shutil.which("chromium") is None:
        _skip(items, "browser", "chromium is not installed: apt-get install chromium")
    if any(item.get_closest_marker("gpu") for item in items) and not _has_gpu():
        _skip(items, "gpu", "there is no CUDA device")


def _skip(items: list[pytest.Item], marker: str, reason: str) -> None:
    for item in items:
        if item.get_closest_marker(marker):
            item.add_marker(pytest.mark.skip(reason=reason))


def _has_gpu() -> bool:
    import torch  # slow to import, wanted by few runs

    return torch.cuda.is_available()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skipped browser test into a failure in CI, where the browser is promised."""
    report = yield
    if report.skipped and _is_ci() and item.get_closest_marker("browser"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not accept: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Do the same for a whole module of browser tests that skips itself."""
    report = yield
    if report.skipped and _is_ci() and "browser" in collector.path.parts:
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not accept: {report.longrepr}"
    return report


def _is_ci() -> bool:
    return os.environ.get("CI") == "true"
