"""Load: fire traffic at the engine, change it while it runs, see what came of it."""

from __future__ import annotations

import streamlit as st

from engine.errors import EngineError
from engine.load.plan import LoadPlan
from ops.load_status import LoadStatus
from ops.station import Station
from shell import load_form, series_charts, session
from shell.live import live
from shell.words import figure, milliseconds

st.header("Load")
station = session.station()


def start(plan: LoadPlan) -> None:
    """Start a load or say why not; runs before the page is drawn, so a click counts once."""
    try:
        station.loads.start(plan, author=session.author())
    except EngineError as error:
        st.session_state["load_error"] = str(error)


def stop() -> None:
    """Stop the load."""
    station.loads.stop()


status = station.loads.status()
is_running = status is not None and status.is_running
default = station.loads.default_plan()
columns = st.columns([3, 1, 2], vertical_alignment="center")
columns[0].button(
    f"Start steady load: {default.target} at {default.rate_hz:g} req/s, 60 % of capacity",
    key="load_default",
    type="primary",
    disabled=is_running,
    on_click=start,
    args=(default,),
    width="stretch",
)
columns[1].button(
    "Stop", key="load_stop", disabled=not is_running, on_click=stop, width="stretch"
)
if message := st.session_state.pop("load_error", None):
    st.error(message, icon=":material/error:")

with st.expander("Another load", expanded=is_running, icon=":material/tune:"):
    plan = load_form.draw(station, status.plan if status and is_running else default)
    if plan is not None and is_running:
        try:
            station.loads.edit(plan)
            st.toast("The load follows the new plan", icon=":material/check:")
        except EngineError as error:
            st.error(str(error), icon=":material/error:")
    elif plan is not None:
        start(plan)
        st.rerun()


def figures(found: LoadStatus) -> None:
    """Draw what was offered and what came of it."""
    latency = found.latency_ms
    tiles = [
        ("Offered", f"{figure(found.offered_hz)} req/s", f"{found.offered} arrivals"),
        ("Goodput", f"{figure(found.goodput_hz)} req/s", f"{found.completed} completed"),
        ("p50 latency", milliseconds(latency["p50"]), "from arrival"),
        ("p99 latency", milliseconds(latency["p99"]), f"max {milliseconds(latency['max'])}"),
        ("Slip p99", milliseconds(found.slip_ms_p99), "sender's lateness"),
    ]
    for column, (label, value, text) in zip(st.columns(5), tiles, strict=True):
        column.metric(label, value, text, delta_color="off", delta_arrow="off", border=True)
    lost = {
        "failed": found.failed,
        "refused": found.refused,
        "expired": found.expired,
        "cancelled": found.cancelled,
        "dropped": found.dropped,
        "in flight": found.in_flight,
    }
    shown = [f"{count} {name}" for name, count in lost.items() if count]
    shown += [f"{name} {value:.4g}" for name, value in found.scores.items()]
    st.caption(" · ".join(shown) or "nothing lost, nothing in flight")
    if not found.is_valid:
        st.warning(
            "Not valid: the generator did not keep up with its plan, so latencies look "
            "better than they were.",
            icon=":material/warning:",
        )
    if found.error:
        st.error(found.error, icon=":material/error:")


def specs(at: Station) -> dict[str, str]:
    """Return the charts of the last five minutes."""
    models, marks = at.recent.models(300), at.recent.marks(300)
    known = list(at.engine.models)
    return {
        "throughput": series_charts.throughput(models, known=known, marks=marks, unit="req/s"),
        "latency": series_charts.latency(models, marks=marks),
    }


@st.fragment(run_every=1.0, key="load_live")
def panels() -> None:
    """Draw the running or the last load."""
    found = session.station().loads.status()
    drawn = session.cached(
        "load", session.station().recent.tick, build=lambda: specs(session.station())
    )
    if found is None:
        st.info("No load has run yet. Start one above.", icon=":material/info:")
    else:
        state = "running" if found.is_running else "ended"
        st.markdown(f"**Run {found.run_id}** :gray[{state}, {found.seconds:.0f} s]")
        figures(found)
        if is_running and not found.is_running:
            st.rerun()
    for column, name in zip(st.columns(2), ("throughput", "latency"), strict=True):
        unit = "req/s by model" if name == "throughput" else "ms, all models"
        with column, st.container(border=True):
            st.markdown(f"**{name.capitalize()}** :gray[{unit}]")
            live(drawn[name], key=f"load_{name}")


panels()
