"""Runs: what was recorded, with its charts, and as files to take away."""

from __future__ import annotations

import time
from collections.abc import Callable

import streamlit as st

from engine.errors import EngineError
from ops.station import Station
from shell import run_tables, series_charts, session, tables
from shell.live import panel
from storage.exports import FORMATS, Format, export_bytes
from storage.samples import RunRecord

LIMIT = 2000
POINTS = 600
NAMES = {"csv": "CSV", "parquet": "Parquet", "json": "JSON"}
PANELS = (
    (("Latency", "ms", "latency"), ("Throughput by model", "req/s", "throughput")),
    (("Memory", "% of the pool held; dotted: fragmentation", "memory"),
     ("Queue by model", "items", "queue")),
)  # fmt: skip
st.header("Runs")
station = session.station()


def download(at: Station, run_id: int, *, file_format: Format) -> Callable[[], bytes]:
    """Return what makes the file when it is asked for."""
    return lambda: export_bytes(at.store, run_id, file_format=file_format)[1]


def offer_files(at: Station, run: RunRecord) -> None:
    """Draw the download buttons; a file is made when its button is pressed."""
    with st.container(horizontal=True, horizontal_alignment="right"):
        for file_format in FORMATS:
            ending = "json" if file_format == "json" else f"{file_format}.zip"
            st.download_button(
                NAMES[file_format],
                data=download(at, run.id, file_format=file_format),
                file_name=f"run-{run.id}.{ending}",
                on_click="ignore",
                key=f"runs_{file_format}_{run.id}",
                icon=":material/download:",
            )


def specs(at: Station, run: RunRecord) -> dict[str, str]:
    """Return the charts of a run, read from the store."""
    start_ms, end_ms = run.started_ms, run.ended_ms or int(time.time() * 1000)
    models = at.store.model_series(start_ms, end_ms + 1000, points=POINTS)
    devices = at.store.device_series(start_ms, end_ms + 1000, points=POINTS)
    marks, known = run_tables.marks(at.store, start_ms, end_ms=end_ms), session.known()
    return {
        "latency": series_charts.latency(models, marks=marks),
        "throughput": series_charts.throughput(models, known=known, marks=marks),
        "memory": series_charts.memory(devices, marks=marks),
        "queue": series_charts.queue(models, known=known, marks=marks),
    }


def open_run(at: Station, run: RunRecord) -> None:
    """Draw a run's figures and charts, and offer its files."""
    if run.ended_ms is None:
        at.store.flush()
    drawn = specs(at, run)
    title, files = st.columns([3, 2], vertical_alignment="center")
    title.subheader(f"Run {run.id}: {run.name or run.kind}", anchor=False)
    with files:
        offer_files(at, run)
    st.caption(" · ".join(run_tables.facts(run)))
    if run.summary:
        for column, (label, value, note) in zip(
            st.columns(5), run_tables.figures(run), strict=True
        ):
            column.metric(label, value, note, delta_color="off", delta_arrow="off", border=True)
    for row in PANELS:
        for column, (name, unit, key) in zip(st.columns(2), row, strict=True):
            with column:
                panel(name, unit, spec=drawn[key], key=f"runs_{run.id}_{key}")
    with st.expander("All figures, the load and the policy", icon=":material/table:"):
        left, middle, right = st.columns(3)
        with left:
            tables.draw(run_tables.summary(run), "No figures: it has not ended.")
        with middle:
            tables.draw(run_tables.plan(run), "It recorded what came; it sent no load itself.")
        with right:
            text = run_tables.policy(at.store, run.first_policy)
            st.code(text, language="toml", height=400)


runs = station.store.runs(limit=LIMIT)
with st.container(border=True, gap="xsmall"):
    st.markdown(f"**Recorded** :gray[{len(runs)}, newest first]")
    tables.draw(
        [run_tables.row(run) for run in runs],
        "No run yet. Start a load on the Load page.",
        right=run_tables.RIGHT,
    )
if runs:
    labels = {str(run.id): run_tables.label(run) for run in runs}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = st.selectbox(
            "Open run",
            list(labels),
            index=list(labels).index(
                session.from_address("run", list(labels), default=str(runs[0].id))
            ),
            format_func=lambda run_id: labels[run_id],
            key="runs_open",
        )
        st.button("Refresh", key="runs_refresh", icon=":material/refresh:")
    st.query_params["run"] = str(chosen)
    try:
        open_run(station, station.store.run(int(str(chosen))))
    except EngineError as error:
        st.error(str(error), icon=":material/error:")
