"""Batching: when a batch leaves, how large it may be, and what that did."""

from __future__ import annotations

import streamlit as st

from engine.decisions import Decision
from ops.station import Station
from shell import batch_charts, forms, model_tables, series_charts, session, tables
from shell.live import panel

FORM = "batching"
SECONDS = 300
ALL = "all models"
LIMITS = "(pool − weights − fixed workspace) / workspace per item, on an empty device"
st.header("Batching")
station = session.station()

forms.applied_note(FORM)
with st.container(border=True, gap="small"):
    st.markdown("**Watermarks** :gray[queued items; a change holds from the next batch on]")
    number = st.column_config.NumberColumn
    fields: dict[str, object] = {
        "low": number(
            "low", min_value=1, step=1, required=True, help="items at which a batch is prepared"
        ),
        "high": number(
            "high", min_value=1, step=1, required=True, help="items at which it must leave"
        ),
        "timeout_ms": number(
            "timeout ms", min_value=0.0, required=True, help="longest wait of the oldest"
        ),
        "fill": st.column_config.SelectboxColumn(
            "fill",
            options=["eager", "patient"],
            required=True,
            help="eager: as soon as the device is free; patient: when full or due",
        ),
        "max_batch_ms": number("longest batch ms", min_value=0.1, help="empty: no cap"),
    }
    forms.model_editor(FORM, fields=fields, names=list(station.engine.models))

names = [ALL, *station.engine.models]
model = st.segmented_control(
    "Model",
    names,
    default=session.from_address("model", names, default=ALL),
    required=True,
    key="batching_model",
    label_visibility="collapsed",
)
st.query_params["model"] = str(model)


def specs(at: Station, batches: list[Decision]) -> dict[str, str]:
    """Return the page's charts for this second."""
    known, marks = session.known(), at.recent.marks(SECONDS)
    models = [m for m in at.recent.models(SECONDS) if model in (ALL, m.model)]
    return {
        "counts": batch_charts.counts(batches, known=known),
        "reasons": batch_charts.reasons(batches),
        "sizes": series_charts.batch_sizes(models, known=known, marks=marks),
        "times": series_charts.wait_and_service(models, marks=marks),
    }


@st.fragment(run_every=1.0, key="batching_live")
def panels() -> None:
    """Draw sizes, waits and reasons, all of it computed before the first element."""
    at = session.station()
    snapshot = at.engine.snapshot()
    found = [d for d in at.engine.decisions(4000) if d.kind == "batch"]
    batches = [d for d in found if model in (ALL, d.model)]
    drawn = session.cached(
        f"batching:{model}", session.tick(SECONDS), build=lambda: specs(at, batches)
    )
    rows = model_tables.batching(snapshot)
    limits = model_tables.limits(at.profiles, snapshot.memory.devices)
    left, right = st.columns(2)
    with left:
        panel(
            "Size of batches",
            f"items; the last {len(batches)} batches",
            spec=drawn["counts"],
            key="batching_counts",
        )
        panel("Items per batch", "last 5 min", spec=drawn["sizes"], key="batching_sizes")
    with right:
        panel(
            "Why they left, what bound them",
            f"the last {len(batches)} batches",
            spec=drawn["reasons"],
            key="batching_reasons",
        )
        panel("Wait and service", "mean ms", spec=drawn["times"], key="batching_times")
    with st.container(border=True, gap="xsmall"):
        st.markdown("**Wait and service** :gray[per request and per batch, since the start]")
        tables.draw(rows, "No model is known.", right=model_tables.RIGHT)
        st.caption("A larger batch pays where the service time per item falls with it.")
    with st.container(border=True, gap="xsmall"):
        st.markdown(f"**Largest batch that fits** :gray[{LIMITS}]")
        tables.draw(limits, "No model has a profile.", right=model_tables.RIGHT)


panels()
