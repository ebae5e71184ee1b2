"""Golden simulations: a changed trace is a changed behaviour."""

from __future__ import annotations

import pytest

from tests.simulation.golden import FOLDER, SCENARIOS, decisions


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_small_scenario_decides_as_it_always_did(name: str):
    kept = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    assert decisions(name).splitlines() == kept.splitlines()


def test_every_kept_log_belongs_to_a_scenario_and_is_small():
    kept = {path.stem: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.txt")}
    assert set(kept) == set(SCENARIOS)
    assert all(text.count("\n") < 200 for text in kept.values())
