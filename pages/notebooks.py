"""Notebooks: runbooks that run in a process of their own, with progress and a report."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.errors import EngineError
from shell import session, tables
from shell.words import figure

st.header("Notebooks")
station = session.station()
books = station.runbooks.list()
if not books:
    st.info("There is no notebook in `notebooks/`.", icon=":material/info:")
    st.stop()


def field(column: DeltaGenerator, key: str, *, default: bool | float | str) -> object:
    """Draw the field of one parameter, of the kind of its default, and return its value."""
    label, widget = key.rpartition(":")[2].replace("_", " "), f"notebooks_{key}"
    if isinstance(default, bool):
        return column.checkbox(label, value=default, key=widget)
    if isinstance(default, int | float):
        return column.number_input(
            label,
            value=default,
            key=widget,
            format="%g" if isinstance(default, float) else None,
        )
    return column.text_input(label, value=str(default), key=widget)


with st.container(border=True, gap="small"):
    titles = {book.name: book.title or book.name for book in books}
    st.markdown(
        "**Run a notebook** :gray[in a process of its own; the result is kept as a run]"
    )
    name = st.selectbox(
        "Notebook",
        list(titles),
        format_func=lambda key: f"{titles[key]} · {key}.ipynb",
        key="notebooks_name",
        label_visibility="collapsed",
    )
    book = next(book for book in books if book.name == name)
    with st.form("form_notebook", border=False):
        parameters: dict[str, object] = {}
        columns = st.columns(4)
        for index, (key, default) in enumerate(book.parameters.items()):
            column = columns[index % len(columns)]
            parameters[key] = field(column, f"{name}:{key}", default=default)
        is_sent = st.form_submit_button(
            "Run", type="primary", icon=":material/play_arrow:", key="notebooks_run"
        )
    if is_sent:
        try:
            job_id = station.runbooks.start(
                str(name), parameters=parameters, author=session.author()
            )
            st.toast(f"Job {job_id} has started", icon=":material/check:")
        except EngineError as error:
            st.error(str(error), icon=":material/error:")


@st.fragment(run_every=1.0, key="notebooks_live")
def progress() -> None:
    """Draw running jobs with their progress, then all jobs of this process."""
    jobs = session.station().runbooks.jobs()
    rows: tables.Rows = [
        {
            "job": job.id,
            "notebook": job.name,
            "state": job.state,
            "cells": f"{job.cells_done} of {job.cells_total}",
            "took": f"{figure(job.seconds)} s",
            "run": job.run_id,
            "error": job.error or None,
        }
        for job in reversed(jobs)
    ]
    if session.has_changed("reports", [job.id for job in jobs if job.report is not None]):
        st.rerun()
    with st.container(key="notebooks_running"):
        for job in jobs:
            if job.state != "running":
                continue
            left, right = st.columns([5, 1], vertical_alignment="center")
            share = job.cells_done / job.cells_total if job.cells_total else 0.0
            text = (
                f"{job.name}: cell {job.cells_done} of {job.cells_total}, {job.seconds:.0f} s"
            )
            left.progress(min(1.0, share), text=text)
            if right.button("Cancel", key=f"notebooks_cancel_{job.id}", width="stretch"):
                session.station().runbooks.cancel(job.id)
    tables.draw(rows, "No notebook has run in this process yet.", right=("took",))


with st.container(border=True, gap="xsmall"):
    st.markdown("**Jobs** :gray[of this process, newest first]")
    progress()

reports = {job.id: job for job in reversed(station.runbooks.jobs()) if job.report is not None}
if reports:
    chosen = st.selectbox(
        "Report",
        list(reports),
        format_func=lambda job_id: f"Job {job_id}: {reports[job_id].name}",
        key="notebooks_report",
    )
    report = reports[chosen].report
    if report is not None:
        st.iframe(f"/reports/{report.name}", height=800, alt="Report of the notebook")
