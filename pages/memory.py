"""Memory: where everything lies, what is budgeted, and how broken the free space is."""

from __future__ import annotations

import streamlit as st

from engine.memory.state import MemoryState
from shell import (
    memory_form,
    memory_panels,
    memory_tiles,
    series_charts,
    session,
    strip,
    tables,
)
from shell.colours import colours_of
from shell.live import panel

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
        "budget": strip.budget_bars(memory.devices),
        "broken": series_charts.fragmentation(
            recent.devices(SECONDS), marks=recent.marks(SECONDS)
        ),
    }


@st.fragment(run_every=1.0, key="memory_live")
def panels() -> None:
    """Draw everything that moves, all of it computed before the first element."""
    snapshot = session.station().engine.snapshot()
    memory = snapshot.memory
    drawn = session.cached(
        f"memory:{colour_by}:{shown}", session.tick(SECONDS), build=lambda: specs(memory)
    )
    residents, holes = tables.residents(memory), tables.holes(memory)
    tiers, note = memory_panels.host(snapshot), memory_panels.host_note(snapshot)
    height = 96 + 44 * len(memory.devices)
    panel(
        "Arenas",
        "every block at its address; hatched: free",
        spec=drawn["strip"],
        key="memory_strip",
        height=height,
    )
    memory_tiles.draw(snapshot)
    memory_tiles.notes(memory.devices)
    left, right = st.columns(2)
    with left:
        panel(
            "Budgets",
            "MiB; the reserve is never lent",
            spec=drawn["budget"],
            key="memory_budget",
            height=max(230, height),
        )
    with right:
        panel(
            "External fragmentation",
            "%, last 5 min; dotted: unusable",
            spec=drawn["broken"],
            key="memory_broken",
            height=max(230, height),
        )
    left, right = st.columns([3, 1])
    with left, st.container(border=True, gap="xsmall"):
        st.markdown("**Residents** :gray[packed weights, one block each]")
        tables.draw(residents, "No model is resident. The first request loads one.")
    with right, st.container(border=True, gap="xsmall"):
        st.markdown("**Holes** :gray[largest first]")
        tables.draw(holes, "There is no hole: every byte is held.", right=("size",))
    with st.container(border=True, gap="xsmall"):
        st.markdown(f"**Host tier** :gray[{note}]")
        tables.draw(tiers, "No model is known.", right=("weights",))


@st.fragment(run_every=2.0, key="memory_compaction")
def compaction() -> None:
    """Draw what moves could open now."""
    memory_panels.compaction(session.station().engine.snapshot().memory.devices)


panels()
compaction()
memory_form.draw(session.station().engine.snapshot().memory.devices)
