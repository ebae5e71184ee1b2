"""Runs: what was recorded, with its charts, and as files to take away."""

from __future__ import annotations

import time
from collections.abc import Callable

import pandas as pd
import plotly.io as pio
import streamlit as st

from engine.errors import EngineError
from ops.recent import Mark
from ops.station import Station
from shell import series_charts, session, tables
from storage.exports import FORMATS, Format, export_bytes
from storage.samples import RunRecord

LIMIT = 2000
st.header("Runs")
station = session.station()


def when(at_ms: int | None) -> str:
    """Return an instant as local date and time."""
    if at_ms is None:
        return "–"
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at_ms / 1000))


def row(run: RunRecord) -> dict[str, object]:
    """Return a run as a row."""
    summary = run.summary
    seconds = None if run.ended_ms is None else (run.ended_ms - run.started_ms) / 1000
    return {
        "run": run.id,
        "name": run.name or run.kind,
        "kind": run.kind,
        "state": run.state,
        "started": when(run.started_ms),
        "seconds": seconds,
        "goodput req/s": summary.get("goodput_hz"),
        "p99 ms": summary.get("latency_ms_p99"),
        "policy": run.first_policy,
        "author": run.author,
    }


def download(at: Station, run_id: int, *, file_format: Format) -> Callable[[], bytes]:
    """Return what makes the file when it is asked for."""
    return lambda: export_bytes(at.store, run_id, file_format=file_format)[1]


def offer_files(at: Station, run: RunRecord) -> None:
    """Draw the download buttons; a file is made when its button is pressed."""
    with st.container(horizontal=True):
        for file_format in FORMATS:
            ending = "json" if file_format == "json" else f"{file_format}.zip"
            st.download_button(
                file_format.upper() if file_format != "parquet" else "Parquet",
                data=download(at, run.id, file_format=file_format),
                file_name=f"run-{run.id}.{ending}",
                on_click="ignore",
                key=f"runs_{file_format}",
                icon=":material/download:",
            )


def open_run(at: Station, run: RunRecord) -> None:
    """Draw a run's figures and charts, and offer its files."""
    end_ms = run.ended_ms or int(time.time() * 1000)
    at.store.flush()
    models = at.store.model_series(run.started_ms, end_ms + 1000, points=600)
    devices = at.store.device_series(run.started_ms, end_ms + 1000, points=600)
    marks = [
        Mark(p.at_ms, "policy", f"version {p.version} by {p.author}: {p.reason}")
        for p in at.store.policies(limit=200)
        if run.started_ms <= p.at_ms <= end_ms
    ]
    st.subheader(f"Run {run.id}: {run.name or run.kind}")
    st.caption(f"{run.state} · {run.hardware} · code {run.code_version} · by {run.author}")
    offer_files(at, run)
    if run.summary:
        figures = [{"figure": k, "value": v} for k, v in run.summary.items()]
        with st.expander("All figures", icon=":material/table:"):
            st.dataframe(pd.DataFrame(figures), hide_index=True, height="content")
    drawn = (
        ("Latency, ms", series_charts.latency(models, marks=marks)),
        (
            "Throughput by model, requests per point",
            series_charts.throughput(
                models, known=list(at.engine.models), marks=marks, unit="requests"
            ),
        ),
        ("Memory used, % of the pool", series_charts.utilisation(devices, marks=marks)),
    )
    for title, spec in drawn:
        with st.container(border=True):
            st.markdown(f"**{title}**")
            st.plotly_chart(
                pio.from_json(spec, skip_invalid=True), key=f"runs_{title}", height=260
            )


runs = station.store.runs(limit=LIMIT)
with st.container(border=True):
    st.markdown(f"**Recorded** :gray[{len(runs)} runs; choose one below]")
    tables.draw([row(run) for run in runs], "No run yet. Start a load on the Load page.")
if runs:
    wanted = st.query_params.get("run", str(runs[0].id))
    ids = [str(run.id) for run in runs]
    chosen = st.selectbox(
        "Open run", ids, index=ids.index(wanted) if wanted in ids else 0, key="runs_open"
    )
    st.query_params["run"] = str(chosen)
    try:
        open_run(station, station.store.run(int(str(chosen))))
    except EngineError as error:
        st.error(str(error), icon=":material/error:")
