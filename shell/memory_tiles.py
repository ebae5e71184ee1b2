"""Memory tiles: a device's figures, and what else is true of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import streamlit as st

from engine.memory.fragmentation import internal, unusable
from engine.memory.state import DeviceState
from engine.snapshot import ModelState, Snapshot
from engine.units import format_bytes
from shell import tables

MOST_TILED = 2


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


def draw(snapshot: Snapshot) -> None:
    """Draw a row of tiles per device; a table where the devices are many."""
    if len(snapshot.memory.devices) <= MOST_TILED:
        for device in snapshot.memory.devices:
            _row(snapshot, device)
        return
    rows: tables.Rows = [
        {"device": device.name}
        | {t.label.removeprefix(f"{device.name} "): t.value for t in figures(snapshot, device)}
        for device in snapshot.memory.devices
    ]
    with st.container(border=True, gap="xsmall"):
        st.markdown("**Devices** :gray[what is held, and how broken up the rest is]")
        tables.draw(rows, "There is no device.")


def _row(snapshot: Snapshot, device: DeviceState) -> None:
    for column, tile in zip(st.columns(5), figures(snapshot, device), strict=True):
        column.metric(
            tile.label,
            tile.value,
            tile.note,
            delta_color="off",
            delta_arrow="off",
            border=True,
            help=tile.help,
        )


def notes(devices: Sequence[DeviceState]) -> None:
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
