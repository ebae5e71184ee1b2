"""Load tiles: how a load stands - what was offered, what came of it, whether it counts."""

from __future__ import annotations

import streamlit as st

from ops.load_status import LoadStatus
from shell.words import figure, milliseconds


def draw(found: LoadStatus) -> None:
    """Draw a load's figures; its notes stay in one place, so that nothing below it moves."""
    plan = found.plan
    wanted = f"{plan.clients} clients" if plan.kind == "closed" else f"{plan.rate_hz:g}"
    latency = found.latency_ms
    tiles = [
        ("Offered", f"{figure(found.offered_hz)} req/s", f"of {wanted}, {plan.kind}"),
        (
            "Achieved",
            f"{figure(found.completed_hz)} req/s",
            f"goodput {figure(found.goodput_hz)} req/s",
        ),
        ("p50 latency", milliseconds(latency["p50"]), f"p95 {milliseconds(latency['p95'])}"),
        ("p99 latency", milliseconds(latency["p99"]), f"max {milliseconds(latency['max'])}"),
        (
            "Slip p99",
            milliseconds(found.slip_ms_p99),
            "kept up" if found.is_valid else "did not keep up",
        ),
    ]
    for column, (label, value, text) in zip(st.columns(5), tiles, strict=True):
        column.metric(
            label,
            value,
            text,
            delta_color="red" if text == "did not keep up" else "off",
            delta_arrow="off",
            border=True,
        )
    with st.container(key="load_notes", gap="xsmall"):
        st.caption(counts(found))
        _troubles(found)


def counts(found: LoadStatus) -> str:
    """Return what became of the arrivals, and the scores of the results."""
    names = ("completed", "in flight", "failed", "refused", "expired", "cancelled", "dropped")
    values = {name: int(getattr(found, name.replace(" ", "_"))) for name in names}
    parts = [f"{found.offered} arrivals"]
    parts += [f"{count} {name}" for name, count in values.items() if count]
    parts += [f"**{name} {_score(value)}**" for name, value in found.scores.items()]
    return " · ".join(parts)


def _score(value: float) -> str:
    """Return a mean score; most are shares, such as a character error rate."""
    return f"{value:.3%}" if 0 <= value <= 1 else figure(value)


def _troubles(found: LoadStatus) -> None:
    if not found.is_valid:
        st.warning(
            "Not valid: the generator did not keep up with its plan, so latencies look "
            "better than they were.",
            icon=":material/warning:",
        )
    if found.error:
        st.error(found.error, icon=":material/error:")
