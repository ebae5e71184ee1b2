"""Overview: how the users are, how the devices are, and the feedback loop as one picture."""

from __future__ import annotations

import streamlit as st

from shell import charts, frames, session, tables
from shell.colours import colour_of
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
    marks = recent.marks(seconds)
    at_model, at_device = frames.instants(models), frames.instants(devices)
    latency = frames.latency(models)
    used = frames.per_device(devices, lambda d: d.utilisation)
    broken = frames.per_device(devices, lambda d: d.external_fragmentation)
    known = list(session.station().engine.models)
    by_model = {name: colour_of(name, known) for name in known}
    by_device = {name: colour_of(name, list(used)) for name in used}
    done = frames.per_model(models, lambda m: m.completed)
    waiting = frames.per_model(models, lambda m: m.queued_items)
    return {
        "latency": charts.lines(
            at_model,
            latency,
            colours=charts.LATENCY_COLOURS,
            marks=marks,
            style={"unit": "ms"},
        ),
        "throughput": charts.lines(
            at_model,
            done,
            colours=by_model,
            marks=marks,
            style={"unit": "req/s", "stacked": True},
        ),
        "memory": charts.lines(
            at_device,
            used,
            colours=by_device,
            marks=marks,
            style={"unit": "%", "percent": True},
        ),
        "queue": charts.lines(
            at_model,
            waiting,
            colours=by_model,
            marks=marks,
            style={"unit": "items", "stacked": True},
        ),
        "loop": charts.loop_panel(
            at_device,
            (
                ("Utilisation of the pools", "%", used),
                ("External fragmentation", "%", broken),
                ("Latency p99", "ms", {"p99": latency["p99"]}),
            ),
            colours={**by_device, **charts.LATENCY_COLOURS},
            marks=marks,
        ),
    }


@st.fragment(run_every=1.0, key="overview_live")
def panels() -> None:
    """Draw everything that moves, all of it computed before the first element."""
    station = session.station()
    drawn = session.cached(f"overview:{seconds}", station.recent.tick, specs)
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
        st.markdown(
            "##### The feedback loop :gray[state of memory, latency, and who changed what]"
        )
        live(drawn["loop"], key="overview_loop", height=360)
    with st.container(border=True):
        st.markdown("**Latest decisions**")
        tables.draw(decisions, "The engine has not decided anything yet: send a request.")


panels()
