"""Tests of the pages without a browser: each draws, and what is edited reaches the engine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine.load.plan import LoadPlan
from engine.policy import Policy
from ops.station import Station

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(path.stem for path in (ROOT / "pages").glob("*.py"))


def draw(page: str) -> AppTest:
    """Run the shell and a page."""
    app = AppTest.from_file(str(ROOT / "shell" / "main.py"), default_timeout=60).run()
    return app.switch_page(str(ROOT / "pages" / f"{page}.py")).run()


def edit(app: AppTest, form: str, changes: dict[str, object]) -> AppTest:
    """Edit the first row of a form's table, as far as seeing what would change."""
    app.session_state[f"editor_{form}_0"] = {
        "edited_rows": {0: changes},
        "added_rows": [],
        "deleted_rows": [],
    }
    return app.run()


def tables(app: AppTest) -> list[list[str]]:
    """Return the columns of every table on a page."""
    return [list(table.value.columns) for table in app.dataframe]


def first_model(station: Station) -> str:
    """Return the model in the first row of the forms."""
    return next(iter(station.engine.models))


@pytest.mark.parametrize("page", PAGES)
def test_a_page_draws_on_an_empty_store(station: Station, page: str):
    assert not draw(page).exception, station


@pytest.mark.parametrize("page", PAGES)
def test_a_page_draws_when_something_has_happened(busy_station: Station, page: str):
    app = draw(page)
    assert not app.exception, busy_station
    assert app.header[0].value == page.capitalize()


def test_an_edit_is_shown_before_it_is_applied_and_then_reaches_the_engine(station: Station):
    version, name = station.engine.policy.version, first_model(station)
    app = edit(draw("batching"), "batching", {"high": 5})
    assert ["setting", "now", "new"] in tables(app)
    assert station.engine.policy.version == version
    app.text_input(key="reason_batching_0").set_value("smaller batches")
    app.button(key="apply_batching").click().run()
    assert not app.exception
    assert station.engine.policy.version == version + 1
    assert station.engine.policy.model(name).high == 5
    station.store.flush()
    assert station.store.policies(limit=1)[0].reason == "smaller batches"


def test_an_edit_can_be_discarded(station: Station):
    before = station.engine.policy
    app = edit(draw("batching"), "batching", {"high": 77})
    app.button(key="discard_batching").click().run()
    assert app.button(key="apply_batching").disabled
    assert station.engine.policy == before


def test_a_wrong_edit_is_one_sentence_and_changes_nothing(station: Station):
    before = station.engine.policy
    app = edit(draw("batching"), "batching", {"low": 60_000})
    assert "low" in app.error[0].value
    assert station.engine.policy == before


def apply_elsewhere(station: Station, queue_items: int) -> int:
    """Let somebody else apply a version meanwhile."""
    return station.apply(
        station.engine.policy.replace(admission={"queue_items": queue_items}),
        author="somebody else",
        reason="meanwhile",
        expected_version=station.engine.policy.version,
    )


def test_an_edit_of_an_old_version_shows_both_and_overwrites_nothing(station: Station):
    app = edit(draw("batching"), "batching", {"high": 9})
    base = station.engine.policy.version
    current = apply_elsewhere(station, 78)
    app.button(key="apply_batching").click().run()
    assert f"based on version {base}" in app.error[0].value
    assert "Nothing was overwritten" in app.warning[0].value
    sides = ["setting", f"version {base}", f"version {current}, in force", "your edit"]
    assert sides in tables(app)
    assert station.engine.policy.version == current
    app.button(key=f"on_top_batching_{current}").click().run()
    assert not app.exception
    assert station.engine.policy.model(first_model(station)).high == 9
    assert station.engine.policy.admission.queue_items == 78


def test_a_form_in_which_nothing_was_typed_follows_the_version_in_force(station: Station):
    app = draw("batching")
    current = apply_elsewhere(station, 79)
    app.run()
    assert not app.warning
    assert app.session_state["base_batching"].version == current


def test_the_placement_policy_can_be_changed_and_put_back(station: Station):
    version = station.engine.policy.version
    app = draw("placement")
    app.radio[0].set_value("round_robin").run()
    app.button(key="apply_placement").click().run()
    assert not app.exception
    assert station.engine.policy.placement.policy == "round_robin"
    app = draw("decisions")
    app.button(key=f"versions_back_{version}_{version + 1}").click().run()
    assert not app.exception
    assert station.engine.policy.version == version + 2
    assert station.engine.policy.placement == Policy().placement


def test_a_model_can_be_loaded_and_evicted_by_hand(station: Station):
    name = first_model(station)
    app = draw("models")
    app.button(key=f"models_load_{name}").click().run()
    app.button(key=f"models_evict_{name}").click().run()
    assert not app.exception
    kinds = {decision.kind.value for decision in station.engine.decisions()}
    assert {"load", "operator"} <= kinds


def test_a_load_is_started_changed_and_stopped_on_its_page(station: Station):
    plan = LoadPlan("digit_reader", kind="constant", rate_hz=5, items=3, deadline_ms=9000)
    run_id = station.loads.start(plan, author="test")
    app = draw("load")
    app.number_input(key=f"load_{run_id}_rate").set_value(7.0)
    app.button(key=f"load_{run_id}_send").click().run()
    assert not app.exception
    status = station.loads.status()
    assert status is not None
    assert (status.plan.rate_hz, status.plan.items, status.plan.deadline_ms) == (7.0, 3, 9000)
    app.run()
    app.button(key="load_stop").click().run()
    assert not app.exception
    status = station.loads.status()
    assert status is not None
    assert not status.is_running


def test_the_default_load_starts_with_one_click_and_is_kept_as_a_run(station: Station):
    app = draw("load")
    app.button(key="load_default").click().run()
    assert not app.exception
    status = station.loads.status()
    assert status is not None
    assert status.is_running
    station.loads.stop()
    app = draw("runs")
    assert not app.exception
    assert f"Run {status.run_id}" in app.subheader[0].value


def test_decisions_are_filtered(busy_station: Station):
    app = draw("decisions")
    app.segmented_control(key="decisions_span").set_value("Latest, in memory")
    app.multiselect(key="decisions_kinds").set_value(["load"]).run()
    assert not app.exception, busy_station
    kinds = next(t.value["kind"] for t in app.dataframe if "numbers" in t.value.columns)
    assert set(kinds) == {"load"}


def test_the_memory_of_an_earlier_instant_is_drawn_with_its_decisions(busy_station: Station):
    app = draw("memory")
    assert not app.exception, busy_station
    slider = app.select_slider[0]
    assert len(slider.options) >= 3  # the first keyframe and two loads
    rebuilt = [c.value for c in app.caption if c.value.startswith("Rebuilt from")]
    assert "0 decisions" not in rebuilt[0]
    app.session_state[slider.key] = busy_station.time_machine.times()[0]
    app.run()
    assert not app.exception
    rebuilt = [c.value for c in app.caption if c.value.startswith("Rebuilt from")]
    assert "0 decisions since" in rebuilt[0]


def test_a_resident_is_held_at_a_lower_precision_once_the_policy_allows_it(station: Station):
    engine = station.engine
    policy = engine.policy.replace(models={"ranker": {"precisions": ["fp32", "int8"]}})
    station.apply(policy, author="t", reason="", expected_version=engine.policy.version)
    engine.infer("ranker", np.zeros((2, 2048), np.float32))
    app = draw("memory")
    app.selectbox(key="memory_convert_model").set_value("ranker").run()
    app.segmented_control(key="memory_convert_precision").set_value("int8").run()
    app.button(key="memory_convert").click().run()
    assert not app.exception
    engine.infer("ranker", np.zeros((2, 2048), np.float32))  # runs after the conversion
    found = {r.model: r.precision for r in engine.snapshot().memory.devices[0].residents}
    assert found["ranker"] == "int8"
