"""Memory tiles: a device's figures, and what else is true of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import streamlit as st

from engine.memory.fragmentation import internal, unusable
from engine.memory.state import DeviceState
from engine.snapshot import ModelState, Snapshot
from engine.units import NS_PER_S, format_bytes, format_ns
from ops.process_memory import ProcessState
from shell import tables

MOST_TILED = 2
THRASH_NS = NS_PER_S
"""Whoever evicts what was used in the last second will load it again soon."""


class Figure(NamedTuple):
    """Hold one tile."""

    label: str
    value: str
    note: str
    help: str


def absent(snapshot: Snapshot, device: DeviceState) -> ModelState | None:
    """Return the largest model that is not on the device; None if all are."""
    here = {resident.model for resident in device.residents}
    others = [model for model in snapshot.models if model.name not in here]
    return max(others, key=lambda model: model.weight_bytes, default=None)


def figures(snapshot: Snapshot, device: DeviceState) -> tuple[Figure, ...]:
    """Return a device's tiles."""
    wanted = absent(snapshot, device)
    size_bytes = wanted.weight_bytes if wanted else 0
    cannot = f"{unusable(device.holes, size_bytes):.0%}" if size_bytes else "–"
    waste = internal(device.lease_bytes, device.needed_lease_bytes)
    return (
        Figure(
            f"{device.name} held",
            format_bytes(device.held_bytes),
            f"{device.utilisation:.0%} of {format_bytes(device.pool_bytes)}",
            "Residents and leases, of the pool.",
        ),
        Figure(
            "Largest hole",
            format_bytes(device.largest_hole_bytes),
            f"{len(device.holes)} hole{'s' if len(device.holes) != 1 else ''}",
            "The largest block that could be had at once.",
        ),
        Figure(
            "Fragmentation",
            f"{device.external_fragmentation:.0%}",
            f"external · {snapshot.no_hole_events}× no hole",
            "External fragmentation: 1 − largest hole / free bytes. Below: how often, on all "
            "devices, enough bytes were free but no hole was large enough.",
        ),
        Figure(
            "Unusable",
            cannot,
            f"for {wanted.name}, {format_bytes(size_bytes)}" if wanted else "all are resident",
            "Share of the free bytes that blocks of the largest absent model cannot use.",
        ),
        Figure(
            "Lease waste",
            f"{waste:.0%}",
            f"internal · of {format_bytes(device.lease_bytes)}",
            "Internal fragmentation: granted but unneeded share of the leases.",
        ),
    )


def activity(device: DeviceState) -> tuple[Figure, ...]:
    """Return tiles of what a device did to make room since the start."""
    idle = device.victim_idle_ns
    return (
        Figure(
            "Last victim idle",
            "–" if idle is None else format_ns(idle),
            "nobody had to go" if idle is None else _thrash(idle),
            "Thrash gauge: how long the model that was evicted last for another's sake had "
            "been idle. Where it is short, the pool throws out what is wanted soon.",
        ),
        Figure(
            "Evictions",
            str(device.evictions),
            f"{sum(r.loads for r in device.residents)} loads of residents",
            "Weights dropped since the start; host copies stay.",
        ),
        Figure(
            "Moves",
            str(device.moves),
            f"{format_bytes(device.moved_bytes)} by compaction",
            "Blocks that compaction has moved since the start.",
        ),
        Figure(
            "Conversions",
            str(device.conversions),
            f"{sum(r.precision != 'fp32' for r in device.residents)} reduced now",
            "Changes of precision since the start, in both directions.",
        ),
        Figure(
            "Reserve",
            format_bytes(device.reserve_bytes),
            f"of {format_bytes(device.capacity_bytes)}",
            "Never lent: what allocates behind the pool's back.",
        ),
    )


def _thrash(idle_ns: int) -> str:
    return "thrashing" if idle_ns < THRASH_NS else "before it went"


def draw(snapshot: Snapshot) -> None:
    """Draw rows of tiles per device; a table where the devices are many."""
    if len(snapshot.memory.devices) <= MOST_TILED:
        for device in snapshot.memory.devices:
            _row(figures(snapshot, device))
            _row(activity(device))
        return
    rows: tables.Rows = [
        {"device": device.name}
        | {
            tile.label.removeprefix(f"{device.name} "): tile.value
            for tile in (*figures(snapshot, device), *activity(device))
        }
        for device in snapshot.memory.devices
    ]
    with st.container(border=True, gap="xsmall"):
        st.markdown("**Devices** :gray[what is held, and how broken up the rest is]")
        tables.draw(rows, "There is no device.")


def _row(row: Sequence[Figure]) -> None:
    for column, tile in zip(st.columns(5), row, strict=True):
        column.metric(
            tile.label,
            tile.value,
            tile.note,
            delta_color="off",
            delta_arrow="off",
            border=True,
            help=tile.help,
        )


def notes(devices: Sequence[DeviceState], process: ProcessState) -> None:
    """Say what is true of devices beyond their figures, in one place that is always there."""
    with st.container(key="memory_notes"):
        budgeted = [device for device in devices if not device.addressed]
        if budgeted:
            parts = [f"{d.name} {format_bytes(d.lease_bytes)}" for d in budgeted]
            st.caption(
                f"Leases of {', '.join(parts)} are a budget of the pool without an address: "
                "the strip shows weights, the budgets show both."
            )
        for device in devices:
            _trouble(device)
        if process.is_over:
            st.warning(
                f"The process holds {format_bytes(process.held_bytes)}; baseline, host copies "
                f"and devices account for {format_bytes(process.most_bytes)}. Raise the "
                "reserve, or look for what else allocates.",
                icon=":material/warning:",
            )


def _trouble(device: DeviceState) -> None:
    books = device.held_bytes + device.reserve_bytes
    if device.is_lost:
        st.error(f"{device.name} is lost until the process restarts.", icon=":material/error:")
    if device.pool_target_bytes < device.pool_bytes:
        st.caption(
            f"{device.name}: the pool shrinks to {format_bytes(device.pool_target_bytes)}, "
            f"{format_bytes(device.pool_bytes)} are in use still."
        )
    if device.truth_bytes > books:
        st.warning(
            f"{device.name} reports {format_bytes(device.truth_bytes)} used; books and reserve "
            f"say {format_bytes(books)}. Raise the reserve.",
            icon=":material/warning:",
        )
