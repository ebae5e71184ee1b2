"""Decisions: what the engine chose, when and why, and the policy versions; newest first."""

from __future__ import annotations

import time

import streamlit as st

from engine.decisions import Kind, Reason
from shell import session, tables, versions
from storage.samples import DecisionRecord

LIMIT = 1000
RING = "Latest, in memory"
SPANS = {RING: 0, "15 min": 900, "1 h": 3600, "6 h": 21_600, "48 h": 172_800}
RARE = [kind.value for kind in Kind if kind not in (Kind.BATCH, Kind.PLACEMENT)]
KINDS = [*RARE, Kind.BATCH.value, Kind.PLACEMENT.value]

st.header("Decisions")
station = session.station()
with st.container(horizontal=True, vertical_alignment="bottom"):
    span = st.segmented_control(
        "Window",
        list(SPANS),
        default=session.from_address("span", list(SPANS), default="15 min"),
        required=True,
        key="decisions_span",
        help=f"{RING}: every decision. The others come from the store, which keeps all of the "
        "rare kinds and a fixed sample of batches and placements per second.",
    )
    st.button("Refresh", key="decisions_refresh", icon=":material/refresh:")
columns = st.columns(5)
kinds = columns[0].multiselect("Kind", KINDS, key="decisions_kinds", placeholder="all")
reasons = columns[1].multiselect(
    "Reason", [reason.value for reason in Reason], key="decisions_reasons", placeholder="all"
)
models = columns[2].multiselect(
    "Model", session.editable(), key="decisions_models", placeholder="all"
)
devices = columns[3].multiselect(
    "Device",
    [device.name for device in station.engine.snapshot().memory.devices],
    key="decisions_devices",
    placeholder="all",
)
text = columns[4].text_input("Contains", key="decisions_text", placeholder="anything")
st.query_params["span"] = str(span)


def found() -> list[DecisionRecord]:
    """Return the decisions of the window, newest first, before the filters below."""
    if span == RING:
        start_ns = station.engine.start_wall_ns
        return [
            DecisionRecord((start_ns + one.at_ns) // 1_000_000, one)
            for one in reversed(station.engine.decisions(100_000))
            if not kinds or one.kind in kinds
        ]
    now_ms = int(time.time() * 1000)
    station.store.flush()
    return list(
        station.store.decisions(
            now_ms - SPANS[str(span)] * 1000,
            now_ms + 1000,
            limit=LIMIT * 10,
            kinds=[Kind(name) for name in kinds] or None,
        )
    )


def is_wanted(record: DecisionRecord) -> bool:
    """Return whether a decision passes the filters."""
    one = record.decision
    return (
        (not reasons or one.reason in reasons)
        and (not models or one.model in models)
        and (not devices or one.device in devices)
        and (not text or text.lower() in one.line().lower())
    )


passed = [record for record in found() if is_wanted(record)]
counts = station.engine.snapshot().decision_counts
with st.container(border=True, gap="xsmall"):
    shown = f"the newest {LIMIT} of {len(passed)}" if len(passed) > LIMIT else len(passed)
    st.markdown(f"**Decisions** :gray[{shown}]")
    tables.draw(tables.stored_decisions(passed[:LIMIT]), "Nothing like that was decided.")
left, right = st.columns([2, 1])
with left, st.container(border=True, gap="xsmall"):
    versions.draw()
with right, st.container(border=True, gap="xsmall"):
    st.markdown("**Counted** :gray[all, since the start]")
    tables.draw(
        [
            {"kind": kind.value, "reason": reason.value.replace("_", " "), "count": count}
            for kind, reason, count in counts
        ],
        "Nothing was decided yet.",
    )
