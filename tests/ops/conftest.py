"""A station with one small model, opened once per module; and the catalogue that it offers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ops.models import Catalog, resolve
from ops.station import Station

DEVICES = "cpu:1x64MiB"


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    """Return the one model whose weights are committed."""
    return resolve(["sample_models"]).only("digit_reader")


@pytest.fixture(scope="module")
def station(catalog: Catalog, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Station]:
    """Open a station that its module's tests share."""
    folder = tmp_path_factory.mktemp("station")
    with Station.open(
        store=f"sqlite:///{folder}/station.db", devices=DEVICES, models=catalog
    ) as opened:
        yield opened
