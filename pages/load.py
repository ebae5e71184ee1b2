"""Load: fire traffic at the engine, change it while it runs, see what came of it."""

from __future__ import annotations

import streamlit as st

from engine.errors import EngineError
from engine.load.plan import LoadPlan
from ops.load_status import LoadStatus
from ops.station import Station
from shell import load_form, load_tiles, series_charts, session
from shell.live import panel

SECONDS = 300
PANELS = (
    ("Offered and achieved", "req/s at its models", "offered"),
    ("Latency", "ms, all models, last 5 s", "latency"),
    ("Throughput by model", "req/s", "throughput"),
    ("Queue by model", "items", "queue"),
)

st.header("Load")
station = session.station()


def start(plan: LoadPlan) -> None:
    """Start a load or say why not; runs before the page is drawn, so a click counts once."""
    try:
        station.loads.start(plan, author=session.author())
    except EngineError as error:
        session.leave("load_error", str(error))


def stop() -> None:
    """Stop the load."""
    station.loads.stop()


status = station.loads.status()
is_running = status is not None and status.is_running
default = station.loads.default_plan()
columns = st.columns([4, 1], vertical_alignment="center")
columns[0].button(
    f"Start steady load at 60 % of capacity: {default.target}, {default.rate_hz:g} req/s",
    key="load_default",
    icon=":material/play_arrow:",
    type="primary",
    disabled=is_running,
    on_click=start,
    args=(default,),
    width="stretch",
)
columns[1].button(
    "Stop",
    key="load_stop",
    icon=":material/stop:",
    disabled=not is_running,
    on_click=stop,
    width="stretch",
)
if message := session.found("load_error"):
    st.error(str(message), icon=":material/error:")

name = "The running load" if is_running else "Another load"
with st.expander(name, expanded=is_running, icon=":material/tune:"):
    shown = status.plan if status is not None and is_running else default
    key = f"load_{status.run_id}" if status is not None and is_running else "load_new"
    plan = load_form.draw(station, shown, key=key, is_running=is_running)
    if plan is not None and is_running:
        try:
            station.loads.edit(plan)
            st.toast("The load follows the new plan", icon=":material/check:")
        except EngineError as error:
            st.error(str(error), icon=":material/error:")
    elif plan is not None:
        start(plan)
        st.rerun()


def specs(at: Station, found: LoadStatus | None) -> dict[str, str]:
    """Return the charts of the last five minutes."""
    models, marks = at.recent.models(SECONDS), at.recent.marks(SECONDS)
    known, target = session.known(), found.plan.target if found else default.target
    pipeline = at.pipelines.get(target)
    own = set(pipeline.spec.models) if pipeline else {target}
    asked = [sample for sample in models if sample.model in own]
    slo_ms = at.engine.policy.model(target).slo_ms
    return {
        "offered": series_charts.offered(asked, marks=marks),
        "latency": series_charts.latency(models, marks=marks, slo_ms=slo_ms),
        "throughput": series_charts.throughput(models, known=known, marks=marks),
        "queue": series_charts.queue(models, known=known, marks=marks),
    }


@st.fragment(run_every=1.0, key="load_live")
def panels() -> None:
    """Draw the running or the last load, all of it computed before the first element."""
    at = session.station()
    found = at.loads.status()
    run_id = found.run_id if found else 0
    drawn = session.cached(
        f"load:{run_id}", session.tick(SECONDS), build=lambda: specs(at, found)
    )
    if is_running and found is not None and not found.is_running:
        st.rerun()
    with st.container(key="load_status"):
        if found is None:
            st.info("No load has run yet. Start one above.", icon=":material/info:")
        else:
            state = "running" if found.is_running else "ended"
            target = found.plan.target
            st.markdown(
                f"**{target}** :gray[{state}, {found.seconds:.0f} s; kept as run {run_id}]"
            )
            load_tiles.draw(found)
    for row in (PANELS[:2], PANELS[2:]):
        for column, (name, unit, key) in zip(st.columns(2), row, strict=True):
            with column:
                panel(name, unit, spec=drawn[key], key=f"load_chart_{key}")


panels()
