"""Memory: where everything lies, what is budgeted, and how broken the free space is."""

from __future__ import annotations

import streamlit as st

from engine.memory.fragmentation import internal, unusable
from engine.memory.state import DeviceState, MemoryState
from engine.snapshot import Snapshot
from engine.units import format_bytes
from shell import series_charts, session, strip, tables
from shell.colours import colour_of
from shell.live import live

st.header("Memory")
left, right = st.columns([1, 1], vertical_alignment="bottom")
colour_by = left.segmented_control(
    "Colour by", ["Model", "Kind", "Age"], default="Model", key="memory_colour"
)
shown = right.segmented_control(
    "Show", ["Used part", "Whole arena"], default="Used part", key="memory_shown"
)


def absent_size(snapshot: Snapshot, device: DeviceState) -> int:
    """Return the size of the largest model that is not on the device; 0 if all are."""
    here = {resident.model for resident in device.residents}
    return max((m.weight_bytes for m in snapshot.models if m.name not in here), default=0)


def figures(snapshot: Snapshot, device: DeviceState) -> list[tuple[str, str, str]]:
    """Return (label, value, help) of a device's tiles."""
    wanted = absent_size(snapshot, device)
    size = format_bytes(wanted)
    cannot = unusable(device.holes, wanted) if wanted else 0.0
    waste = internal(device.lease_bytes, device.needed_lease_bytes)
    held = f"{format_bytes(device.held_bytes)} / {format_bytes(device.pool_bytes)}"
    return [
        (
            f"{device.name} used",
            format_bytes(device.held_bytes),
            f"Residents and leases: {held}.",
        ),
        (
            "Largest hole",
            format_bytes(device.largest_hole_bytes),
            f"{len(device.holes)} holes in the arena.",
        ),
        (
            "Fragmentation",
            f"{device.external_fragmentation:.0%}",
            "External: 1 − largest hole / free bytes.",
        ),
        (
            "Unusable",
            f"{cannot:.0%}",
            f"Share of the free bytes useless to the largest absent model, {size}.",
        ),
        ("Internal waste", f"{waste:.0%}", "Granted but unneeded share of the leases."),
    ]


@st.fragment(run_every=1.0, key="memory_live")
def panels() -> None:
    """Draw everything that moves."""
    station = session.station()
    snapshot = station.engine.snapshot()
    memory, tick = snapshot.memory, station.recent.tick
    known = list(station.engine.models)
    colours = {name: colour_of(name, known) for name in known}
    blocks = session.cached(
        f"memory:strip:{colour_by}:{shown}",
        tick,
        build=lambda: strip.address_strip(
            memory.devices,
            colour_by=colour_by or "Model",
            colours=colours,
            whole=shown == "Whole arena",
            now_ns=memory.at_ns,
        ),
    )
    budgets = session.cached(
        "memory:budget", tick, build=lambda: strip.budget_bars(memory.devices)
    )
    recent = station.recent
    broken = session.cached(
        "memory:fragmentation",
        tick,
        build=lambda: series_charts.fragmentation(recent.devices(300), marks=recent.marks(300)),
    )
    arenas(memory, blocks)
    for device in memory.devices:
        tiles(snapshot, device)
    left, right = st.columns(2)
    height = max(220, height_of(memory))
    with left, st.container(border=True):
        st.markdown("**Budgets** :gray[MiB; the reserve is never lent]")
        live(budgets, key="memory_budget", height=height)
    with right, st.container(border=True):
        st.markdown("**External fragmentation** :gray[%, last 5 min]")
        live(broken, key="memory_broken", height=height)
    with st.container(border=True):
        st.markdown("**Residents**")
        tables.draw(
            tables.residents(memory), "No model is resident. The first request loads one."
        )


def height_of(memory: MemoryState) -> int:
    """Return the height in pixels that a row per device needs."""
    return 110 + 52 * len(memory.devices)


def arenas(memory: MemoryState, blocks: str) -> None:
    """Draw the address strip."""
    with st.container(border=True):
        st.markdown("**Arenas** :gray[every block at its address]")
        live(blocks, key="memory_strip", height=height_of(memory))


def tiles(snapshot: Snapshot, device: DeviceState) -> None:
    """Draw a device's figures and what else is true of it."""
    found = figures(snapshot, device)
    for column, (label, value, text) in zip(st.columns(5), found, strict=True):
        column.metric(label, value, border=True, help=text)
    note(device)


def note(device: DeviceState) -> None:
    """Say what is true of a device beyond its figures."""
    if not device.addressed:
        st.caption(
            f"{device.name}: leases are a budget of the pool without an address "
            f"({format_bytes(device.lease_bytes)} now), so the strip shows weights only."
        )
    if device.pool_target_bytes < device.pool_bytes:
        st.caption(
            f"{device.name}: the pool shrinks to {format_bytes(device.pool_target_bytes)}, "
            f"{format_bytes(device.pool_bytes)} are in use still."
        )
    if device.is_lost:
        st.error(f"{device.name} is lost until the process restarts.", icon=":material/error:")


panels()
