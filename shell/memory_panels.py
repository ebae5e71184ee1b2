"""Memory panels: tables of residents and holes, of the host tier, of what drivers say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import streamlit as st

from engine.ports import Telemetry
from engine.snapshot import Snapshot
from engine.units import MIB, format_bytes
from shell import session, tables

V = TypeVar("V")


def draw(snapshot: Snapshot) -> None:
    """Draw what lies on the devices, what lies on the host, and what drivers say."""
    left, right = st.columns([3, 1])
    with left, st.container(border=True, gap="xsmall"):
        st.markdown("**Residents** :gray[packed weights, one block each]")
        residents = tables.residents(snapshot.memory)
        tables.draw(residents, "No model is resident. The first request loads one.")
    with right, st.container(border=True, gap="xsmall"):
        st.markdown("**Holes** :gray[largest first]")
        holes = tables.holes(snapshot.memory)
        tables.draw(holes, "There is no hole: every byte is held.", right=("size",))
    with st.container(border=True, gap="xsmall"):
        st.markdown(f"**Host tier** :gray[{host_note(snapshot)}]")
        tables.draw(host(snapshot), "No model is known.", right=("weights",))
    if found := session.station().telemetry():
        with st.container(border=True, gap="xsmall"):
            st.markdown("**Cards** :gray[what the driver says; a kernel ran, not how full]")
            tables.draw(cards(found), "")


def host(snapshot: Snapshot) -> tables.Rows:
    """Return where every model's weights are, and what they are wanted for."""
    changes = {
        (p.key.model, p.key.precision): f" ({p.output_change:.2%} off)"
        for p in session.station().engine.lower_profiles()
    }
    rows: tables.Rows = []
    for model in snapshot.models:
        if not model.weight_bytes:
            continue
        reduced = [
            f"{name} {format_bytes(size)}{changes.get((model.name, name), '')}"
            for name, size in model.sizes[1:]
        ]
        rows.append(
            {
                "model": model.name,
                "weights": format_bytes(model.weight_bytes),
                "on the host": _tier(model.host_bytes, is_on_disk=model.is_on_disk),
                "resident on": ", ".join(model.resident_on) or None,
                "loads": model.counters.loads,
                "evictions": model.counters.evictions,
                "demand": round(model.demand, 1),
                "lower precision": ", ".join(reduced) or None,
                "lease used": f"{model.measured_share:.0%}" if model.measured_share else None,
                "overshoots": model.overshoots or None,
            }
        )
    return rows


def _tier(host_bytes: int, *, is_on_disk: bool) -> str:
    if not host_bytes:
        return "not yet"
    return "mapped file" if is_on_disk else "in memory"


def host_note(snapshot: Snapshot) -> str:
    """Return one sentence on the host's memory."""
    kept = sum(m.host_bytes for m in snapshot.models if not m.is_on_disk)
    mapped = sum(m.host_bytes for m in snapshot.models if m.is_on_disk)
    budget = session.station().engine.policy.memory.host_mib
    limit = "no limit" if budget is None else f"of {format_bytes(int(budget * MIB))}"
    return f"{format_bytes(kept)} in memory ({limit}), {format_bytes(mapped)} in mapped files"


def cards(found: Mapping[str, Telemetry]) -> tables.Rows:
    """Return what drivers say of their cards."""
    return [
        {
            "device": name,
            "used": f"{format_bytes(card.used_bytes)} of {format_bytes(card.total_bytes)}",
            "other processes": _known(card.others_bytes, format_bytes),
            "kernels ran": _known(card.busy, "{:.0%}".format),
            "memory was read": _known(card.memory_busy, "{:.0%}".format),
            "power": _known(card.power_w, "{:.0f} W".format),
            "temperature": _known(card.temperature_c, "{} °C".format),
        }
        for name, card in found.items()
    ]


def _known(value: V | None, words: Callable[[V], str]) -> str | None:
    return None if value is None else words(value)
