"""Overview: how the users are, how the devices are, and the feedback loop as one picture."""

from __future__ import annotations

import streamlit as st

from shell import series_charts, session, tables
from shell.live import panel
from shell.tiles import strictest_slo_ms, tiles

PANELS = (
    (("Latency", "ms, last 5 s", "latency"), ("Throughput by model", "req/s", "throughput")),
    (("Memory", "% of the pool held; dotted: fragmentation", "memory"),
     ("Queue by model", "items", "queue")),
)  # fmt: skip

title, control = st.columns([3, 1], vertical_alignment="center")
title.header("Overview")
with control, st.container(horizontal_alignment="right"):
    seconds = session.window_seconds()


def specs() -> dict[str, str]:
    """Return the page's charts for this second."""
    station = session.station()
    models, devices = station.recent.models(seconds), station.recent.devices(seconds)
    marks, known = station.recent.marks(seconds), session.known()
    slo_ms = strictest_slo_ms(station, models)
    return {
        "latency": series_charts.latency(models, marks=marks, slo_ms=slo_ms),
        "throughput": series_charts.throughput(models, known=known, marks=marks),
        "memory": series_charts.memory(devices, marks=marks),
        "queue": series_charts.queue(models, known=known, marks=marks),
        "loop": series_charts.loop(models, devices, marks=marks),
    }


@st.fragment(run_every=1.0, key="overview_live")
def panels() -> None:
    """Draw everything that moves, all of it computed before the first element."""
    station = session.station()
    drawn = session.cached(f"overview:{seconds}", session.tick(seconds), build=specs)
    figures = tiles(station, seconds)
    decisions = tables.decisions(station.engine.decisions(400), station, limit=8)
    with st.container(key="overview_banner"):  # always there, so that nothing below it moves
        if breach := figures.breach():
            st.warning(breach, icon=":material/warning:")
    figures.draw()
    for row in PANELS:
        for column, (name, unit, key) in zip(st.columns(2), row, strict=True):
            with column:
                panel(name, unit, spec=drawn[key], key=f"overview_{key}")
    panel(
        "The feedback loop",
        "state of memory and queues, latency, and who changed what",
        spec=drawn["loop"],
        key="overview_loop",
        height=400,
    )
    with st.container(border=True, gap="xsmall"):
        st.markdown("**Latest decisions** :gray[batches are on the Decisions page]")
        tables.draw(decisions, "The engine has not decided anything yet: send a request.")


panels()
