"""Memory: where everything lies, what is budgeted, and how broken the free space is."""

from __future__ import annotations

import streamlit as st

from engine.memory.state import MemoryState
from engine.units import format_bytes
from shell import (
    budgets,
    memory_form,
    memory_orders,
    memory_panels,
    memory_tiles,
    series_charts,
    session,
    strip,
    time_machine,
    working_set_panel,
)
from shell.colours import colours_of
from shell.live import Panel, panel, row

SECONDS = 300
COLOURS = ["Model", "Kind", "Age"]
SHOWN = ["Used part", "Whole arena"]
title, left, right = st.columns([4, 2, 2], vertical_alignment="bottom")
title.header("Memory")
colour_by = left.segmented_control(
    "Colour by",
    COLOURS,
    default=session.from_address("colour", COLOURS, default="Model"),
    required=True,
    key="memory_colour",
)
shown = right.segmented_control(
    "Show",
    SHOWN,
    default=session.from_address("show", SHOWN, default="Used part"),
    required=True,
    key="memory_shown",
)
st.query_params.update({"colour": str(colour_by), "show": str(shown)})


def specs(memory: MemoryState) -> dict[str, str]:
    """Return the page's charts for this second."""
    recent = session.station().recent
    return {
        "strip": strip.address_strip(
            memory.devices,
            colour_by=colour_by or "Model",
            colours=colours_of(session.known()),
            whole=shown == "Whole arena",
            now_ns=memory.at_ns,
        ),
        "budget": budgets.budget_bars(memory.devices),
        "reserve": budgets.reserve_bars(memory.devices),
        "broken": series_charts.fragmentation(
            recent.devices(SECONDS), marks=recent.marks(SECONDS)
        ),
    }


@st.fragment(run_every=1.0, key="memory_live")
def panels() -> None:
    """Draw everything that moves, all of it computed before the first element."""
    station = session.station()
    snapshot = station.engine.snapshot()
    memory = snapshot.memory
    drawn = session.cached(
        f"memory:{colour_by}:{shown}", session.tick(SECONDS), build=lambda: specs(memory)
    )
    height = 96 + 44 * len(memory.devices)
    panel(
        "Arenas",
        "every block at its address; hatched: free",
        spec=drawn["strip"],
        key="memory_strip",
        height=height,
    )
    memory_tiles.draw(snapshot)
    process = session.cached(
        "memory:process", session.tick(SECONDS), build=lambda: station.process.state(snapshot)
    )
    allowed = f"MiB; books and reserves allow {format_bytes(process.most_bytes)}"
    broken = "%, last 5 min; dotted: unusable"
    bar = budgets.process_bar(process)
    row(
        (
            Panel("Budgets", "MiB of the pool", drawn["budget"], "memory_budget"),
            Panel("External fragmentation", broken, drawn["broken"], "memory_broken"),
        ),
        max(230, height),
    )
    row(
        (
            Panel("Reserve", "MiB, never lent", drawn["reserve"], "memory_reserve"),
            Panel("Process", allowed, bar, "memory_process"),
        ),
        height,
    )
    memory_tiles.notes(memory.devices, process)
    memory_panels.draw(snapshot)


@st.fragment(run_every=2.0, key="memory_compaction")
def compaction() -> None:
    """Draw what moves could open now, and what may be held smaller."""
    memory_orders.draw(session.station().engine.snapshot())


@st.fragment(run_every=10.0, key="memory_working_set")
def working_set() -> None:
    """Draw what more or less memory would have brought."""
    working_set_panel.draw(session.station().engine.snapshot())


panels()
left, right = st.columns([3, 2])
with left:
    compaction()
with right:
    working_set()
time_machine.draw()
memory_form.draw(session.station().engine.snapshot().memory.devices)
