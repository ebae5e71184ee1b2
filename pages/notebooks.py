"""Notebooks: runbooks that run in a process of their own, with progress and a report."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.errors import EngineError
from shell import session, tables

st.header("Notebooks")
station = session.station()
books = station.runbooks.list()
if not books:
    st.info("There is no notebook in `notebooks/`.", icon=":material/info:")
    st.stop()


def field(column: DeltaGenerator, key: str, *, default: bool | float | str) -> object:
    """Draw the field of one parameter, of the kind of its default, and return its value."""
    label, widget = key.replace("_", " "), f"notebooks_{key}"
    if isinstance(default, bool):
        return column.checkbox(label, value=default, key=widget)
    if isinstance(default, int | float):
        return column.number_input(label, value=default, key=widget)
    return column.text_input(label, value=str(default), key=widget)


with st.container(border=True):
    titles = {book.name: book.title or book.name for book in books}
    name = st.selectbox(
        "Notebook", list(titles), format_func=lambda key: titles[key], key="notebooks_name"
    )
    book = next(book for book in books if book.name == name)
    with st.form("form_notebook", border=False):
        parameters: dict[str, object] = {}
        columns = st.columns(max(1, min(4, len(book.parameters) or 1)))
        for index, (key, default) in enumerate(book.parameters.items()):
            parameters[key] = field(columns[index % len(columns)], key, default=default)
        is_sent = st.form_submit_button("Run", type="primary", icon=":material/play_arrow:")
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
    for job in (job for job in jobs if job.state == "running"):
        left, right = st.columns([5, 1], vertical_alignment="center")
        share = job.cells_done / job.cells_total if job.cells_total else 0.0
        text = f"{job.name}: cell {job.cells_done} of {job.cells_total}, {job.seconds:.0f} s"
        left.progress(share, text=text)
        if right.button("Cancel", key=f"notebooks_cancel_{job.id}", width="stretch"):
            session.station().runbooks.cancel(job.id)
    rows: tables.Rows = [
        {
            "job": job.id,
            "notebook": job.name,
            "state": job.state,
            "cells": f"{job.cells_done} / {job.cells_total}",
            "seconds": round(job.seconds, 1),
            "run": job.run_id,
            "error": job.error,
        }
        for job in jobs
    ]
    tables.draw(rows, "No notebook has run in this process yet.")
    done = [job.id for job in jobs if job.report is not None]
    if done != st.session_state.get("notebooks_done"):
        st.session_state["notebooks_done"] = done
        st.rerun()


with st.container(border=True):
    st.markdown("**Jobs**")
    progress()

reports = {job.id: job for job in station.runbooks.jobs() if job.report is not None}
if reports:
    chosen = st.selectbox("Report of job", list(reports), key="notebooks_report")
    report = reports[chosen].report
    if report is not None:
        st.iframe(f"/reports/{report.name}", height=800)
