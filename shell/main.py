"""Main: names the pages, waits for the station, shows its state; runs before every page."""

from __future__ import annotations

import pathlib
import time

import streamlit as st

from ops import runtime
from shell import session

ROOT = pathlib.Path(__file__).resolve().parents[1]
STYLE = """<style>
[data-stale=true]{opacity:1!important;transition:none!important}
.block-container{padding-top:4.2rem;padding-bottom:3rem;max-width:1500px}
[data-testid=stMetric]{padding:.8rem .9rem;min-height:100%}
[data-testid=stMetricValue]{font-size:1.55rem}
h2{font-size:1.75rem!important;padding-top:0!important}
h5{padding:.1rem 0 .2rem 0!important}
</style>"""

st.set_page_config(page_title="Millpond", page_icon="🎡", layout="wide")
st.html(STYLE)


def page(name: str, title: str, *, icon: str, default: bool = False) -> object:
    """Return a page of the root's `pages` folder."""
    path = ROOT / "pages" / f"{name}.py"
    return st.Page(path, title=title, icon=f":material/{icon}:", default=default)


pages = st.navigation(
    {
        "Operate": [
            page("overview", "Overview", icon="monitoring", default=True),
            page("memory", "Memory", icon="view_column"),
            page("models", "Models", icon="deployed_code"),
            page("batching", "Batching", icon="stacks"),
            page("placement", "Placement", icon="hub"),
        ],
        "Experiment": [
            page("load", "Load", icon="bolt"),
            page("runs", "Runs", icon="history"),
            page("notebooks", "Notebooks", icon="menu_book"),
        ],
        "Audit": [page("decisions", "Decisions", icon="fact_check")],
    }
)


@st.fragment(run_every=1.0)
def wait_for_station() -> None:
    """Say how far the start is, and draw the page when it is done."""
    state = runtime.state()
    if state.phase == "running":
        st.rerun()
    if state.phase == "starting":
        st.info(f"Starting: {state.message}", icon=":material/hourglass_top:")
    else:
        st.error(f"The station is {state.phase}: {state.message}", icon=":material/error:")


def status() -> None:
    """Show in the sidebar what is running, and who edits."""
    station = session.station()
    snapshot = station.engine.snapshot()
    up_s = time.time() - station.started_ms / 1000
    is_simulated = any(device.simulated for device in snapshot.memory.devices)
    with st.sidebar:
        state = "paused" if snapshot.is_paused else "running"
        colour = "orange" if snapshot.is_paused else "green"
        icon = ":material/pause_circle:" if snapshot.is_paused else ":material/check_circle:"
        up = f"{up_s / 60:.0f} min" if up_s >= 120 else f"{up_s:.0f} s"
        st.badge(f"{state} · up {up}", icon=icon, color=colour)
        names = ", ".join(device.name for device in snapshot.memory.devices)
        st.caption(f"{names} · policy version {snapshot.policy_version}")
        if is_simulated:
            st.badge("simulated devices: no real model runs", color="violet")
        st.text_input("Your name, for the record", key="author", placeholder="operator")


if runtime.state().phase != "running":
    wait_for_station()
    st.stop()
status()
pages.run()
