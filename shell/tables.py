"""Tables: decisions, residents and models as rows that people read."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pandas as pd
import streamlit as st

from engine.decisions import Decision
from engine.memory.state import MemoryState
from engine.units import format_bytes, format_ns
from ops.station import Station
from shell.words import figure
from storage.samples import DecisionRecord

Rows = list[dict[str, object]]
SIZES = frozenset({"bytes", "wanted", "free", "pool", "offset", "lease_bytes"})


TALL = 420
"""Pixels; a table with more rows than fit scrolls."""


def draw(rows: Rows, empty: str, *, right: Sequence[str] = ()) -> None:
    """Draw a table, or the sentence that stands where it would be.

    Args:
        right: Columns of figures with a unit, which are texts but end at the right.
    """
    if not rows:
        st.caption(empty)
        return
    st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        height=TALL if len(rows) > 11 else "content",
        column_config={name: st.column_config.Column(alignment="right") for name in right},
        placeholder="–",
    )


def numbers_text(numbers: Sequence[tuple[str, object]]) -> str:
    """Return a decision's figures on one line."""
    return ", ".join(f"{name} {_figure(name, value)}" for name, value in numbers)


def _figure(name: str, value: object) -> str:
    if isinstance(value, int) and name in SIZES:
        return format_bytes(value) if value >= 4096 else str(value)
    return figure(value) if isinstance(value, float) else str(value)


def decision_row(decision: Decision, at_ms: int) -> dict[str, object]:
    """Return one decision as a row."""
    return {
        "when": time.strftime("%H:%M:%S", time.localtime(at_ms / 1000)),
        "kind": decision.kind.value,
        "reason": decision.reason.value.replace("_", " "),
        "model": decision.model,
        "device": decision.device,
        "numbers": numbers_text(decision.numbers),
    }


def decisions(found: Sequence[Decision], station: Station, *, limit: int) -> Rows:
    """Return the latest decisions, newest first; batches only if nothing else happened."""
    notable = [d for d in found if d.kind not in ("batch", "placement")]
    return in_memory((notable or list(found))[-limit:], station)


def in_memory(found: Sequence[Decision], station: Station) -> Rows:
    """Return decisions of the running engine as rows, newest first."""
    start_ns = station.engine.start_wall_ns
    return [decision_row(d, (start_ns + d.at_ns) // 1_000_000) for d in reversed(found)]


def stored_decisions(found: Sequence[DecisionRecord]) -> Rows:
    """Return stored decisions as rows, in the order given."""
    return [decision_row(record.decision, record.at_ms) for record in found]


def devices(memory: MemoryState) -> Rows:
    """Return what every device holds and does."""
    return [
        {
            "device": d.name,
            "kind": "simulated" if d.simulated else d.kind,
            "state": "lost" if d.is_lost else "draining" if d.is_draining else "open",
            "used": f"{d.utilisation:.0%}",
            "held": f"{format_bytes(d.held_bytes)} of {format_bytes(d.pool_bytes)}",
            "residents": len(d.residents),
            "running": f"{d.running.model} × {d.running.items}" if d.running else None,
            "expected ms": figure(d.running.expected_ns / 1e6) if d.running else None,
            "prepared": f"{d.prepared.model} × {d.prepared.items}" if d.prepared else None,
            "loads pending": ", ".join(d.pending_loads) or None,
        }
        for d in memory.devices
    ]


def residents(memory: MemoryState) -> Rows:
    """Return all residents of all devices."""
    rows: Rows = []
    for device in memory.devices:
        rows += [
            {
                "device": device.name,
                "model": resident.model,
                "size": format_bytes(resident.size_bytes),
                "precision": resident.precision,
                "movable": resident.is_movable,
                "reload price": format_ns(resident.price_ns) if resident.price_ns else None,
                "class": resident.priority_class,
                "in use": resident.in_use,
                "pinned": resident.pinned,
                "unused for": f"{(memory.at_ns - resident.last_used_ns) / 1e9:.0f} s",
                "resident for": f"{(memory.at_ns - resident.loaded_ns) / 1e9:.0f} s",
                "loads": resident.loads,
            }
            for resident in device.residents
        ]
    return rows


def holes(memory: MemoryState, most: int = 8) -> Rows:
    """Return the largest holes of every device, largest first."""
    return [
        {"device": device.name, "size": format_bytes(size_bytes)}
        for device in memory.devices
        for size_bytes in sorted(device.holes, reverse=True)[:most]
    ]
