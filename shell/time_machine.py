"""Time machine: the arenas as they were, change by change, with the decisions on the way."""

from __future__ import annotations

import time

import streamlit as st

from ops.time_machine import Moment
from shell import session, strip, tables
from shell.colours import colours_of
from shell.live import live

SPANS = {"5 min": 300, "1 h": 3600, "6 h": 21_600, "48 h": 172_800}
SHOWN = 200
"""Decisions in the table at most."""


@st.fragment(key="memory_time_machine")
def draw() -> None:
    """Draw the slider over changes, the arenas at that instant, and what was decided."""
    with st.container(border=True, gap="xsmall"):
        st.markdown(
            "**Memory time machine** :gray[where weights lay after each load, eviction, move "
            "and conversion; leases are not kept]"
        )
        left, middle, right = st.columns([4, 9, 2], vertical_alignment="bottom")
        span = left.segmented_control(
            "Window", list(SPANS), default="5 min", required=True, key="memory_past_span"
        )
        right.button("Refresh", key="memory_past_refresh", width="stretch")
        instants = _instants(SPANS[str(span)])
        if not instants:
            st.caption("Nothing is kept of this window yet: a second after the start there is.")
            return
        chosen = middle.select_slider(
            "Instant, one step per change",
            instants,
            value=instants[-1],
            format_func=_clock,
            key=f"memory_past_{span}_{instants[-1]}",
        )
        moment = session.station().time_machine.at(int(chosen))
        if moment is None:
            st.caption("That instant is not kept any more.")
            return
        _draw(moment)


def _instants(seconds: int) -> tuple[int, ...]:
    """Return what the slider runs over; what is not written yet is written first."""
    station = session.station()
    station.store.flush()
    now_ms = int(time.time() * 1000)
    return station.time_machine.changes(now_ms - seconds * 1000, now_ms + 1)


def _draw(moment: Moment) -> None:
    spec = strip.address_strip(
        moment.devices,
        colour_by="Model",
        colours=colours_of(session.known()),
        whole=False,
        now_ns=0,
    )
    live(
        spec,
        key="memory_past_strip",
        height=96 + 44 * len(moment.devices),
        alt=f"Arenas at {_clock(moment.at_ms)}",
    )
    since = tables.stored_decisions(moment.decisions[:SHOWN])
    st.caption(
        f"Rebuilt from the keyframe of {_clock(moment.keyframe_ms)}; "
        f"{len(moment.decisions)} decisions since, newest first."
    )
    tables.draw(since, "Nothing was decided between the keyframe and this instant.")


def _clock(at_ms: int) -> str:
    """Return local time with milliseconds, `14:03:07.250`."""
    return time.strftime("%H:%M:%S", time.localtime(at_ms / 1000)) + f".{at_ms % 1000:03d}"
