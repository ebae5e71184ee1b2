"""Models: what each one did, how urgent it is, what was promised, and who is resident."""

from __future__ import annotations

import streamlit as st

from engine.errors import EngineError
from engine.events import Command
from engine.units import format_bytes
from shell import forms, session, tables

FORM = "models"
st.header("Models")
station = session.station()


@st.fragment(run_every=1.0, key="models_live")
def table() -> None:
    """Draw what every model did since the start."""
    rows: tables.Rows = []
    for model in session.station().engine.snapshot().models:
        counted = model.counters
        where = ", ".join(model.resident_on) or ("loading" if model.loading_on else "–")
        rows.append(
            {
                "model": model.name,
                "resident on": where,
                "weights": format_bytes(model.weight_bytes),
                "queued": model.queued_items,
                "running": model.running_items,
                "completed": counted.completed,
                "failed": counted.failed,
                "refused": counted.refused,
                "p50 ms": round(model.latency.percentile_ns(0.5) / 1e6, 2),
                "p99 ms": round(model.latency.percentile_ns(0.99) / 1e6, 2),
                "within SLO": f"{counted.good / counted.completed:.1%}"
                if counted.completed
                else "–",
                "loads": counted.loads,
                "evictions": counted.evictions,
            }
        )
    tables.draw(rows, "No model is known.")


with st.container(border=True):
    st.markdown("**Since the start**")
    table()

for name, sentence in station.missing.items():
    st.info(f"**{name}**: {sentence}", icon=":material/download:")

with st.container(border=True):
    st.markdown("**By hand** :gray[nothing in use is disturbed]")
    columns = st.columns([3, 3, 1, 1], vertical_alignment="bottom")
    chosen = columns[0].selectbox("Model", list(station.engine.models), key="models_model")
    devices = [device.name for device in station.engine.snapshot().memory.devices]
    device = columns[1].selectbox(
        "Device", ["best", *devices], key="models_device", help="best: where most is free"
    )
    is_load = columns[2].button("Load", key="models_load", width="stretch")
    is_evict = columns[3].button("Evict", key="models_evict", width="stretch")
    if (is_load or is_evict) and chosen:
        command = Command.LOAD if is_load else Command.EVICT
        target = "" if device == "best" else str(device)
        try:
            station.engine.command(
                command, author=session.author(), model=chosen, device=target
            )
            st.toast(f"{command.value} {chosen}: ordered", icon=":material/check:")
        except EngineError as error:
            st.error(str(error), icon=":material/error:")

forms.applied_note(FORM)
forms.stale_note(FORM)
with st.container(border=True):
    st.markdown("**Urgency and promises** :gray[class 0 is the most urgent]")
    number = st.column_config.NumberColumn
    fields: dict[str, object] = {
        "priority_class": number(
            "class", min_value=0, max_value=9, step=1, required=True, help="0 goes first"
        ),
        "weight": number(
            "weight", min_value=0.01, max_value=100.0, required=True, help="share in its class"
        ),
        "slo_ms": number("SLO ms", min_value=0.1, required=True),
        "deadline_ms": number("deadline ms", min_value=0.1, help="empty: none"),
        "pinned": st.column_config.CheckboxColumn("pinned", help="never evicted"),
    }
    policy = station.engine.policy
    names = [*station.engine.models, *station.pipelines]
    forms.model_editor(FORM, policy, fields=fields, names=names)
