"""Main: names the pages, waits for the station, shows its state; runs before every page."""

from __future__ import annotations

import pathlib
import time

import streamlit as st

from engine.snapshot import Snapshot
from ops import runtime
from shell import session

STALE_S = 5
ROOT = pathlib.Path(__file__).resolve().parents[1]
STYLE = """<style>
[data-stale=true]{opacity:1!important;transition:none!important}
.block-container{padding-top:4.1rem;padding-bottom:3rem;max-width:1500px}
[data-testid=stMetric]{min-height:100%}
h2{font-size:1.75rem!important;padding-top:0!important}
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


@st.fragment(run_every=2.0, key="status")
def status() -> None:
    """Show in the sidebar what is running, and what is wrong with it."""
    station = session.station()
    snapshot = station.engine.snapshot()
    is_ok, error, _ = station.store.health()
    newest = station.recent.devices(1)
    late_s = time.time() - (newest[-1].at_ms if newest else station.started_ms) / 1000
    state = "paused" if snapshot.is_paused else "running"
    colour = "orange" if snapshot.is_paused else "green"
    icon = ":material/pause_circle:" if snapshot.is_paused else ":material/check_circle:"
    st.badge(f"{state} · up {up_time(station.started_ms)}", icon=icon, color=colour)
    st.caption(f"{device_names(snapshot)} · policy version {snapshot.policy_version}")
    if any(device.simulated for device in snapshot.memory.devices):
        st.badge("simulated devices: no real model runs", color="violet")
    if late_s > STALE_S:
        st.badge(f"last sample {late_s:.0f} s ago", icon=":material/schedule:", color="orange")
    if not is_ok:
        st.badge("not stored", icon=":material/database_off:", color="red", help=error)


def up_time(started_ms: int) -> str:
    """Return how long the station has been up, in the largest unit that says something."""
    up_s = time.time() - started_ms / 1000
    units = ((86_400, "d"), (3600, "h"), (60, "min"))
    size, unit = next(((s, u) for s, u in units if up_s >= 2 * s), (1, "s"))
    return f"{up_s / size:.0f} {unit}"


def device_names(snapshot: Snapshot) -> str:
    """Return the devices' names; their number where they are many."""
    names = [device.name for device in snapshot.memory.devices]
    return ", ".join(names) if len(names) <= 4 else f"{names[0]} … {names[-1]} ({len(names)})"


if runtime.state().phase != "running":
    wait_for_station()
    st.stop()
with st.sidebar:
    status()
    st.text_input("Your name, for the record", key="author", placeholder="operator")
pages.run()
