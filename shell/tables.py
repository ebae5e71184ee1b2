"""Tables: decisions, residents and models as rows that people read."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pandas as pd
import streamlit as st

from engine.decisions import Decision
from engine.memory.state import MemoryState
from engine.units import format_bytes
from ops.station import Station
from storage.samples import DecisionRecord

Rows = list[dict[str, object]]
SIZES = frozenset({"bytes", "wanted", "free", "pool", "offset", "lease_bytes"})


def draw(rows: Rows, empty: str) -> None:
    """Draw a table, or the sentence that stands where it would be."""
    if rows:
        st.dataframe(pd.DataFrame(rows), hide_index=True, height="content")
    else:
        st.caption(empty)


def numbers_text(numbers: Sequence[tuple[str, object]]) -> str:
    """Return a decision's figures on one line."""
    return ", ".join(f"{name} {_figure(name, value)}" for name, value in numbers)


def _figure(name: str, value: object) -> str:
    if isinstance(value, int) and name in SIZES:
        return format_bytes(value) if value >= 4096 else str(value)
    return f"{value:.3g}" if isinstance(value, float) else str(value)


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
    chosen = (notable or list(found))[-limit:]
    start_ns = station.engine.start_wall_ns
    return [decision_row(d, (start_ns + d.at_ns) // 1_000_000) for d in reversed(chosen)]


def stored_decisions(found: Sequence[DecisionRecord]) -> Rows:
    """Return stored decisions as rows, in the order given."""
    return [decision_row(record.decision, record.at_ms) for record in found]


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
