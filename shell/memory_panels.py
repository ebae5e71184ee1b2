"""Memory panels: the host tier, and a compaction before it is ordered."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from engine.errors import EngineError
from engine.memory.preview import Preview, preview
from engine.memory.state import DeviceState
from engine.snapshot import Snapshot
from engine.units import MIB, format_bytes, format_ns
from shell import session, tables


def host(snapshot: Snapshot) -> tables.Rows:
    """Return where every model's weights are, and what they are wanted for."""
    rows: tables.Rows = []
    for model in snapshot.models:
        if not model.weight_bytes:
            continue
        reduced = [f"{name} {format_bytes(size)}" for name, size in model.sizes[1:]]
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


def compaction(devices: Sequence[DeviceState]) -> None:
    """Draw what compaction would do on a device, and the button that does it."""
    with st.container(border=True, gap="xsmall"):
        st.markdown(
            "**Compaction** :gray[(defragmentation) moves idle residents together; "
            "what is in use or not movable stays]"
        )
        columns = st.columns([2, 2, 5, 1], vertical_alignment="bottom")
        names = [device.name for device in devices]
        name = columns[0].selectbox("Device", names, key="memory_compact_device")
        wanted = columns[1].number_input(
            "Hole MiB",
            min_value=0.0,
            value=0.0,
            key="memory_compact_hole",
            help="0: the largest that moves can open",
        )
        device = next((d for d in devices if d.name == name), None)
        found = preview(device, int(wanted * MIB)) if device else None
        columns[2].markdown(_words(found, device))
        columns[3].button(
            "Compact",
            key="memory_compact",
            disabled=found is None,
            on_click=_order,
            args=(str(name), int(wanted * MIB)),
            width="stretch",
        )
        if found is not None:
            tables.draw(_moves(found), "")
    if note := session.found("memory_order"):
        st.toast(str(note), icon=":material/check:")
    if trouble := session.found("memory_error"):
        st.error(str(trouble), icon=":material/error:")


def _words(found: Preview | None, device: DeviceState | None) -> str:
    if device is None:
        return "There is no device."
    if found is None:
        return (
            f"Nothing to gain: the largest hole has {format_bytes(device.largest_hole_bytes)} "
            f"of {format_bytes(device.free_bytes)} free, and no moves open that one."
        )
    count = len(found.moves)
    return (
        f"{count} move{'s' if count != 1 else ''} of {format_bytes(found.moved_bytes)} open "
        f"**{format_bytes(found.opened_bytes)}** (now {format_bytes(found.hole_bytes)}); the "
        f"device is busy with it for about {format_ns(found.took_ns)}."
    )


def _moves(found: Preview) -> tables.Rows:
    return [
        {
            "model": move.model,
            "size": format_bytes(move.size_bytes),
            "from MiB": round(move.offset / MIB, 1),
            "to MiB": round(move.new_offset / MIB, 1),
        }
        for move in found.moves
    ]


def _order(device: str, size_bytes: int) -> None:
    """Carry out a click; runs before the page is drawn, so that it counts once."""
    try:
        session.station().engine.operator.compact(
            author=session.author(), device=device, size_bytes=size_bytes
        )
        session.leave("memory_order", f"compaction of {device}: ordered")
    except EngineError as error:
        session.leave("memory_error", str(error))
