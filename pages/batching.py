"""Batching: when a batch leaves, how large it may be, and what that did."""

from __future__ import annotations

import streamlit as st

from engine.snapshot import ModelState
from shell import forms, series_charts, session, tables
from shell.live import live

FORM = "batching"
st.header("Batching")
station = session.station()

forms.applied_note(FORM)
forms.stale_note(FORM)
with st.container(border=True):
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
    policy = station.engine.policy
    forms.model_editor(FORM, policy, fields=fields, names=list(station.engine.models))


def row(model: ModelState) -> dict[str, object]:
    """Return what batching did for a model since the start."""
    counted = model.counters
    batches = max(1, counted.batches)
    queueing, service = model.queueing, model.service
    safe = ", ".join(f"{device} {items}" for device, items in model.safe_items)
    return {
        "model": model.name,
        "batches": counted.batches,
        "items per batch": round(counted.items_completed / batches, 2),
        "queued": model.queued_items,
        "wait p50 ms": round(queueing.percentile_ns(0.5) / 1e6, 2),
        "wait p99 ms": round(queueing.percentile_ns(0.99) / 1e6, 2),
        "service p50 ms": round(service.percentile_ns(0.5) / 1e6, 2),
        "largest that fits": safe or "–",
    }


@st.fragment(run_every=1.0, key="batching_live")
def panels() -> None:
    """Draw sizes, waits and reasons."""
    recent = session.station().recent
    snapshot = session.station().engine.snapshot()
    known = list(session.station().engine.models)
    drawn = session.cached(
        "batching:sizes",
        recent.tick,
        build=lambda: series_charts.batch_sizes(
            recent.models(300), known=known, marks=recent.marks(300)
        ),
    )
    reasons: tables.Rows = [
        {"left because": reason.value.replace("_", " "), "batches": count}
        for kind, reason, count in snapshot.decision_counts
        if kind == "batch"
    ]
    left, right = st.columns([2, 1])
    with left, st.container(border=True):
        st.markdown("**Items per batch** :gray[last 5 min]")
        live(drawn, key="batching_sizes", height=260)
    with right, st.container(border=True, height=326):
        st.markdown("**Why batches left** :gray[since the start]")
        tables.draw(reasons, "No batch has left yet.")
    with st.container(border=True):
        st.markdown("**Wait and service** :gray[since the start]")
        tables.draw([row(model) for model in snapshot.models], "No model is known.")
        st.caption(
            "Largest that fits = (pool − weights − fixed workspace) / workspace per item, "
            "from the planned profile of the first item shape asked for. A larger batch is "
            "not always faster: compare items per batch with service time."
        )


panels()
