"""Overview: how the users are, how the devices are, and the feedback loop as one picture."""

from __future__ import annotations

import streamlit as st

from shell import series_charts, session, tables
from shell.live import live
from shell.tiles import tiles

title, control = st.columns([3, 1], vertical_alignment="center")
title.header("Overview")
with control:
    seconds = session.window_seconds()


def specs() -> dict[str, str]:
    """Return the page's charts for this second."""
    recent = session.station().recent
    models, devices = recent.models(seconds), recent.devices(seconds)
    marks, known = recent.marks(seconds), list(session.station().engine.models)
    return {
        "latency": series_charts.latency(models, marks=marks),
        "throughput": series_charts.throughput(models, known=known, marks=marks, unit="req/s"),
        "memory": series_charts.utilisation(devices, marks=marks),
        "queue": series_charts.queue(models, known=known, marks=marks),
        "loop": series_charts.loop(models, devices, marks=marks),
    }


@st.fragment(run_every=1.0, key="overview_live")
def panels() -> None:
    """Draw everything that moves, all of it computed before the first element."""
    station = session.station()
    drawn = session.cached(f"overview:{seconds}", station.recent.tick, build=specs)
    figures = tiles(station, seconds)
    decisions = tables.decisions(station.engine.decisions(400), station, limit=12)
    breach = figures.breach()
    if breach:
        st.warning(breach, icon=":material/warning:")
    figures.draw()
    rows = (
        (("Latency", "ms", "latency"), ("Throughput by model", "req/s, stacked", "throughput")),
        (("Memory used", "% of the pool", "memory"), ("Queue by model", "items", "queue")),
    )
    for row in rows:
        for column, (name, unit, key) in zip(st.columns(2), row, strict=True):
            with column, st.container(border=True):
                st.markdown(f"**{name}** :gray[{unit}]")
                live(drawn[key], key=f"overview_{key}")
    with st.container(border=True):
        st.markdown("**The feedback loop** :gray[memory, latency, and who changed what]")
        live(drawn["loop"], key="overview_loop", height=360)
    with st.container(border=True):
        st.markdown("**Latest decisions**")
        tables.draw(decisions, "The engine has not decided anything yet: send a request.")


panels()
