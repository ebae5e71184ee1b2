"""Placement: which device a batch goes to, by which rule, and how the devices are loaded."""

from __future__ import annotations

import streamlit as st

from engine.errors import EngineError
from engine.events import Command
from engine.policy import PLACEMENTS
from shell import forms, series_charts, session, tables
from shell.live import panel

FORM = "placement"
SECONDS = 300
WORDS = {
    "round_robin": "the next free device in turn, whatever it holds",
    "least_loaded": "where the batch would start first",
    "memory_aware": "the lowest weighted sum of the terms below",
}
TERMS = {
    "headroom": "share of the pool that would be held afterwards",
    "fragmentation": "how broken up the rest would be",
    "queue": "work that is ahead of the batch",
    "swap": "time of the load that it would take",
    "victim_class": "urgency of what would be evicted",
}
st.header("Placement")
station = session.station()

forms.applied_note(FORM)
with st.container(border=True, gap="small"):
    st.markdown("**Policy** :gray[holds from the next batch on; nothing is dropped]")
    base, fill = session.base_policy(FORM).placement, session.filled(FORM)
    wanted: dict[str, object] = {
        "policy": st.radio(
            "Policy",
            PLACEMENTS,
            index=PLACEMENTS.index(base.policy),
            captions=[WORDS[name] for name in PLACEMENTS],
            horizontal=True,
            key=f"placement_policy_{fill}",
            label_visibility="collapsed",
        )
    }
    for column, (term, words) in zip(st.columns(5), TERMS.items(), strict=True):
        wanted[term] = column.number_input(
            term.replace("_", " "),
            min_value=0.0,
            max_value=1000.0,
            value=float(getattr(base, term)),
            step=0.1,
            key=f"placement_{term}_{fill}",
            help=f"{words}; memory_aware only",
        )
    changes = {name: value for name, value in wanted.items() if value != getattr(base, name)}
    forms.propose(FORM, {"placement": changes} if changes else {})


@st.fragment(run_every=1.0, key="placement_live")
def panels() -> None:
    """Draw the devices' load and the last placements, all computed before they are drawn."""
    at = session.station()
    recent, engine = at.recent, at.engine
    rows = tables.devices(engine.snapshot().memory)
    busy = session.cached(
        "placement:busy",
        session.tick(SECONDS),
        build=lambda: series_charts.busy(recent.devices(SECONDS), marks=recent.marks(SECONDS)),
    )
    placed = [d for d in engine.decisions(4000) if d.kind == "placement"]
    last = tables.in_memory(placed[-20:], at)
    with st.container(border=True, gap="xsmall"):
        st.markdown("**Devices** :gray[now]")
        tables.draw(rows, "There is no device.", right=("used", "held", "expected ms"))
    panel(
        "Busy",
        "% of each second in which a batch ran, last 5 min",
        spec=busy,
        key="placement_busy",
        height=210,
    )
    with st.container(border=True, gap="xsmall"):
        st.markdown(
            f"**Last placements** :gray[of {len(placed)} in memory, with the terms of the best]"
        )
        tables.draw(last, "Nothing was placed yet: with one device there is nothing to choose.")


panels()

with st.container(border=True, gap="small"):
    st.markdown("**Drain** :gray[no new work goes to a draining device; what runs, ends]")
    columns = st.columns([4, 1, 1], vertical_alignment="bottom")
    names = [device.name for device in station.engine.snapshot().memory.devices]
    target = columns[0].selectbox(
        "Device", names, key="placement_device", label_visibility="collapsed"
    )
    commands = (Command.DRAIN, Command.UNDRAIN)
    is_pressed = [
        column.button(command.value.capitalize(), key=f"placement_{command}", width="stretch")
        for column, command in zip(columns[1:], commands, strict=True)
    ]
    if any(is_pressed):
        command = commands[is_pressed.index(True)]
        try:
            station.engine.command(command, author=session.author(), device=str(target))
            st.toast(f"{command.value} {target}: ordered", icon=":material/check:")
        except EngineError as error:
            st.error(str(error), icon=":material/error:")
