"""A station for the pages: real, small, in memory, and closed at the end."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import pytest

from ops import runtime
from ops.options import Options
from ops.station import Station


@pytest.fixture(scope="module")
def station(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Station]:
    """Start the process's station on one small CPU device."""
    module = tmp_path_factory.mktemp("models") / "few.py"
    module.write_text(
        '"""The model whose weights are committed."""\n'
        "from sample_models import MODELS as ALL\n\n"
        'MODELS = [spec for spec in ALL if spec.name in ("digit_reader", "ranker")]\n'
    )
    options = Options(store="sqlite:///:memory:", devices="cpu:1x256MiB", models=(str(module),))
    yield runtime.start(options)
    runtime.stop()


@pytest.fixture(scope="module")
def busy_station(station: Station) -> Station:
    """Let the station have served something, and stored it."""
    spec = station.engine.models["digit_reader"]
    with station.record(name="small", author="test"):
        for seed in range(8):
            station.engine.infer("digit_reader", spec.inputs(seed).payload)
        station.engine.infer("ranker", np.zeros((2, 2048), np.float32))
        station.flush()
    return station


@pytest.fixture(scope="module", autouse=True)
def main_module() -> Iterator[None]:
    """Put the main module back: a page run by Streamlit's test driver takes its place.

    A process that is spawned later would run the page as its own main module.
    """
    before = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = before
