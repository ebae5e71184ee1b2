"""Tests of the pages without a browser: each draws, and what is edited reaches the engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from engine.policy import Policy
from ops.station import Station

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(path.stem for path in (ROOT / "pages").glob("*.py"))


def draw(page: str) -> AppTest:
    """Run the shell and a page."""
    app = AppTest.from_file(str(ROOT / "shell" / "main.py"), default_timeout=60).run()
    return app.switch_page(str(ROOT / "pages" / f"{page}.py")).run()


def edit(app: AppTest, form: str, *, base: int, changes: dict[str, object]) -> AppTest:
    """Edit the first row of a form's table and apply it."""
    app.session_state[f"editor_{form}_{base}"] = {
        "edited_rows": {0: changes},
        "added_rows": [],
        "deleted_rows": [],
    }
    button = next(b for b in app.button if b.label == "Apply")
    return button.click().run()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_draws_on_an_empty_store(station: Station, page: str):
    assert not draw(page).exception, station


@pytest.mark.parametrize("page", PAGES)
def test_a_page_draws_when_something_has_happened(busy_station: Station, page: str):
    app = draw(page)
    assert not app.exception, busy_station
    assert app.header[0].value == page.capitalize()


def test_an_edit_of_a_watermark_reaches_the_engine(station: Station):
    base = station.engine.policy.version
    app = edit(draw("batching"), "batching", base=base, changes={"high": 5})
    assert not app.exception
    name = next(iter(station.engine.models))
    assert station.engine.policy.version == base + 1
    assert station.engine.policy.model(name).high == 5


def test_a_wrong_edit_is_one_sentence_and_changes_nothing(station: Station):
    before = station.engine.policy
    app = edit(draw("batching"), "batching", base=before.version, changes={"low": 60_000})
    assert "low" in app.error[0].value
    assert station.engine.policy == before


def test_an_edit_based_on_an_old_version_shows_the_difference(station: Station):
    app = draw("batching")
    base = station.engine.policy.version
    station.apply(
        station.engine.policy.replace(admission={"queue_items": 77}),
        author="somebody else",
        reason="meanwhile",
        expected_version=base,
    )
    app = edit(app, "batching", base=base, changes={"high": 9})
    assert f"based on version {base}" in app.error[0].value
    assert station.engine.policy.version == base + 1
    assert station.engine.policy.admission.queue_items == 77


def test_the_placement_policy_can_be_changed(station: Station):
    app = draw("placement")
    app.radio[0].set_value("round_robin")
    next(b for b in app.button if b.label == "Apply").click().run()
    assert not app.exception
    assert station.engine.policy.placement.policy == "round_robin"
    station.apply(
        Policy(),
        author="test",
        reason="as before",
        expected_version=station.engine.policy.version,
    )


def test_a_model_can_be_loaded_and_evicted_by_hand(station: Station):
    app = draw("models")
    next(b for b in app.button if b.label == "Load").click().run()
    assert not app.exception
    assert any(d.kind == "load" for d in station.engine.decisions())
