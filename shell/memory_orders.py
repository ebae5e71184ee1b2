"""Memory orders: a compaction before it is ordered, and a change of precision."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from engine.errors import EngineError
from engine.memory.preview import Preview, preview
from engine.memory.state import DeviceState
from engine.snapshot import Snapshot
from engine.units import MIB, format_bytes, format_ns
from shell import session, tables


def draw(snapshot: Snapshot) -> None:
    """Draw both, and what came of the last order."""
    _compaction(snapshot.memory.devices)
    with st.container(border=True, gap="xsmall"):
        st.markdown("**Precision** :gray[weights at bf16 or int8 where the policy allows it]")
        _conversion(snapshot)
    if note := session.found("memory_order"):
        st.toast(str(note), icon=":material/check:")
    if trouble := session.found("memory_error"):
        st.error(str(trouble), icon=":material/error:")


def _compaction(devices: Sequence[DeviceState]) -> None:
    """Draw what compaction would do on a device, and the button that does it."""
    with st.container(border=True, gap="xsmall"):
        st.markdown(
            "**Compaction** :gray[(defragmentation) moves idle residents together; "
            "what is in use or not movable stays]"
        )
        columns = st.columns([3, 3, 6, 3], vertical_alignment="bottom")
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


def _conversion(snapshot: Snapshot) -> None:
    """Draw what holds a resident at another precision."""
    residents = [r for d in snapshot.memory.devices for r in d.residents]
    names = list(dict.fromkeys(r.model for r in residents))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.selectbox("Model", names, key="memory_convert_model", width=240)
        sizes = next((m.sizes for m in snapshot.models if m.name == name), ())
        wanted = st.segmented_control(
            "Precision",
            [precision for precision, _ in sizes] or ["fp32"],
            default="fp32",
            required=True,
            key="memory_convert_precision",
            help="What its policy allows; the change of the output stands in the host tier.",
        )
        st.button(
            "Convert",
            key="memory_convert",
            disabled=name is None or len(sizes) < 2,
            on_click=_convert,
            args=(str(name), str(wanted)),
            help="Takes effect once the model is idle.",
        )


def _convert(model: str, precision: str) -> None:
    try:
        session.station().engine.operator.convert(model, precision, author=session.author())
        session.leave("memory_order", f"{model} at {precision}: ordered")
    except EngineError as error:
        session.leave("memory_error", str(error))
