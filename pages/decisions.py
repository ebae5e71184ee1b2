"""Decisions: what the engine chose, when and why; from the store, newest first."""

from __future__ import annotations

import time

import streamlit as st

from engine.decisions import Kind
from shell import session, tables

LIMIT = 500
SPANS = {"15 min": 900, "1 h": 3600, "6 h": 21_600, "48 h": 172_800}

st.header("Decisions")
columns = st.columns([2, 3, 2, 1], vertical_alignment="bottom")
span = columns[0].segmented_control(
    "Window", list(SPANS), default="15 min", key="decisions_span"
)
kinds = columns[1].multiselect("Kinds", [kind.value for kind in Kind], key="decisions_kinds")
text = columns[2].text_input("Contains", key="decisions_text", placeholder="model, device, …")
columns[3].button("Refresh", key="decisions_refresh", width="stretch")

station = session.station()
now_ms = int(time.time() * 1000)
found = station.store.decisions(
    now_ms - SPANS[span or "15 min"] * 1000,
    now_ms + 1000,
    limit=LIMIT,
    kinds=[Kind(name) for name in kinds] or None,
    text=text or "",
)
counts = station.engine.snapshot().decision_counts
with st.container(border=True):
    st.markdown(f"**Stored** :gray[{len(found)} of at most {LIMIT} shown]")
    tables.draw(tables.stored_decisions(found), "Nothing was decided in this window.")
    st.caption(
        "Policy changes, loads, evictions, device events and refusal onsets are always stored; "
        "of batches and placements a fixed sample per second, the counts below are complete."
    )
with st.container(border=True):
    st.markdown("**Counted since the start**")
    tables.draw(
        [
            {"kind": kind.value, "reason": reason.value.replace("_", " "), "count": count}
            for kind, reason, count in counts
        ],
        "Nothing was decided yet.",
    )
