"""Placement: which device a batch goes to, by which rule, and how the devices are loaded."""

from __future__ import annotations

import streamlit as st

from engine.errors import EngineError, PolicyError
from engine.events import Command
from engine.policy import PLACEMENTS
from shell import forms, series_charts, session, tables
from shell.live import live

FORM = "placement"
WORDS = {
    "round_robin": "the next free device in turn, whatever it holds",
    "least_loaded": "where the batch would start first",
    "memory_aware": "weighs headroom, fragmentation, queue, swap and whose weights would go",
}
TERMS = ("headroom", "fragmentation", "queue", "swap", "victim_class")
st.header("Placement")
station = session.station()
policy = station.engine.policy

forms.applied_note(FORM)
forms.stale_note(FORM)
with st.container(border=True):
    st.markdown("**Policy** :gray[lowest weighted sum of terms wins]")
    with st.form("form_placement", border=False):
        chosen = st.radio(
            "Policy",
            PLACEMENTS,
            index=PLACEMENTS.index(policy.placement.policy),
            captions=[WORDS[name] for name in PLACEMENTS],
            horizontal=True,
            key=f"placement_policy_{session.base_version(FORM)}",
            label_visibility="collapsed",
        )
        weights = {
            term: column.number_input(
                term.replace("_", " "),
                min_value=0.0,
                max_value=1000.0,
                value=float(getattr(policy.placement, term)),
                step=0.1,
                key=f"placement_{term}_{session.base_version(FORM)}",
            )
            for column, term in zip(st.columns(5), TERMS, strict=True)
        }
        left, right = st.columns([4, 1], vertical_alignment="bottom")
        reason = left.text_input("Reason", key="reason_placement", placeholder="why (optional)")
        is_sent = right.form_submit_button("Apply", type="primary", width="stretch")
    if is_sent:
        try:
            changed = policy.replace(placement={"policy": chosen, **weights})
            forms.apply_edit(FORM, changed, reason=reason)
        except PolicyError as error:
            st.error(str(error), icon=":material/error:")

with st.container(border=True):
    st.markdown("**Drain** :gray[no new work goes to a draining device]")
    columns = st.columns([4, 1, 1], vertical_alignment="bottom")
    names = [device.name for device in station.engine.snapshot().memory.devices]
    target = columns[0].selectbox("Device", names, key="placement_device")
    commands = (Command.DRAIN, Command.UNDRAIN)
    is_pressed = [
        column.button(command.value.capitalize(), key=f"placement_{command}", width="stretch")
        for column, command in zip(columns[1:], commands, strict=True)
    ]
if any(is_pressed):
    command = commands[is_pressed.index(True)]
    try:
        station.engine.command(command, author=session.author(), device=str(target))
    except EngineError as error:
        st.error(str(error), icon=":material/error:")


@st.fragment(run_every=1.0, key="placement_live")
def panels() -> None:
    """Draw the devices' load and the last placements."""
    recent = session.station().recent
    engine = session.station().engine
    devices = engine.snapshot().memory.devices
    busy = session.cached(
        "placement:busy",
        recent.tick,
        build=lambda: series_charts.busy(recent.devices(300), marks=recent.marks(300)),
    )
    rows: tables.Rows = [
        {
            "device": d.name,
            "kind": "simulated" if d.simulated else d.kind,
            "state": "lost" if d.is_lost else "draining" if d.is_draining else "open",
            "used": f"{d.utilisation:.0%}",
            "residents": len(d.residents),
            "running": f"{d.running.model} × {d.running.items}" if d.running else "–",
            "prepared": f"{d.prepared.model} × {d.prepared.items}" if d.prepared else "–",
            "loads pending": ", ".join(d.pending_loads) or "–",
        }
        for d in devices
    ]
    placed = [d for d in engine.decisions(4000) if d.kind == "placement"][-12:]
    start_ns = engine.start_wall_ns
    with st.container(border=True):
        st.markdown("**Devices**")
        tables.draw(rows, "There is no device.")
    with st.container(border=True):
        st.markdown("**Busy** :gray[share of each second in which a batch ran, last 5 min]")
        live(busy, key="placement_busy", height=220)
    with st.container(border=True):
        st.markdown("**Last placements** :gray[with the terms of the best devices]")
        tables.draw(
            [
                tables.decision_row(d, (start_ns + d.at_ns) // 1_000_000)
                for d in reversed(placed)
            ],
            "No placement was needed yet: with one device there is nothing to choose.",
        )


panels()
