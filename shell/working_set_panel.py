"""Working set panel: loads that more or less memory would have caused, and a sentence."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from engine.decisions import Decision, Kind
from engine.memory.state import DeviceState
from engine.memory.working_set import Access, advise, miss_curve
from engine.snapshot import Snapshot
from engine.units import MIB, NS_PER_S, format_bytes
from shell import charts, session
from shell.charts import Figure
from shell.live import live
from shell.words import figure
from storage.samples import DeviceSample

POINTS = 64
REACH = 2.0
"""The curve goes to so many times what weights may take now."""
EXTRAS = (0.125, 0.25, 0.5, 1.0)
"""Shares of that by which the sentence tries to add."""
LEAST_USES = 20
MOST_DECISIONS = 20_000
LEASE_S = 900
"""How far back the largest lease is looked for; it is not room for weights."""


def draw(snapshot: Snapshot) -> None:
    """Draw the advice for a device, and the curve that it was read off."""
    devices = snapshot.memory.devices
    with st.container(border=True, gap="xsmall"):
        st.markdown("**Working set** :gray[loads per minute by bytes for weights, LRU]")
        if not devices:
            return
        names = [device.name for device in devices]
        chosen = names[0]
        if len(names) > 1:
            chosen = st.selectbox("Device", names, key="memory_working_set_device")
        station = session.station()
        device = with_peak(devices[names.index(chosen)], station.recent.devices(LEASE_S))
        used = accesses(station.engine.decisions(MOST_DECISIONS), chosen)
        st.markdown(sentence(used, snapshot, device=device))
        live(curve(used, snapshot, device=device), key="memory_curve", height=200)


def accesses(found: Sequence[Decision], device: str) -> list[Access]:
    """Return when which model's batch ran on a device, the oldest first."""
    return [
        Access(d.at_ns, d.model) for d in found if d.kind is Kind.BATCH and d.device == device
    ]


def with_peak(device: DeviceState, seconds: Sequence[DeviceSample]) -> DeviceState:
    """Return the device with the most that leases have taken lately as its leases."""
    most = max((s.lease_bytes for s in seconds if s.device == device.name), default=0)
    return replace(device, lease_bytes=max(device.lease_bytes, most))


def room_bytes(device: DeviceState) -> int:
    """Return what leases leave of a device for weights."""
    return max(MIB, device.pool_bytes - device.lease_bytes)


def sentence(used: Sequence[Access], snapshot: Snapshot, *, device: DeviceState) -> str:
    """Return what more memory would have brought, or how much was not needed."""
    if len(used) < LEAST_USES:
        return f"{len(used)} batches have run here lately; {LEAST_USES} are wanted for advice."
    weights = {model.name: model.weight_bytes for model in snapshot.models}
    now = room_bytes(device)
    tried = (advise(used, weights, now_bytes=now, extra_bytes=int(now * s)) for s in EXTRAS)
    found = [advice for advice in tried if advice is not None]
    if not found:
        return "No model was used twice lately: no memory would have saved a load."
    span_s = (used[-1].at_ns - used[0].at_ns) / NS_PER_S
    over = f"by the last {figure(span_s)} s of traffic"
    if not found[0].now_per_minute:
        spare = format_bytes(found[0].spare_bytes)
        return f"Everything used twice stays resident; **{spare}** less would do, {over}."
    best = next((a for a in found if a.then_per_minute <= a.now_per_minute / 2), found[-1])
    return (
        f"With **{format_bytes(best.extra_bytes)} more**, loads would fall from "
        f"{figure(best.now_per_minute)} to {figure(best.then_per_minute)} per minute, {over}."
    )


def curve(used: Sequence[Access], snapshot: Snapshot, *, device: DeviceState) -> str:
    """Return loads per minute against bytes for weights, with a line at what there is now."""
    weights = {model.name: model.weight_bytes for model in snapshot.models}
    now = room_bytes(device)
    steps = [max(1, int(now * REACH * n / POINTS)) for n in range(1, POINTS + 1)]
    points = miss_curve(used, weights, capacities=steps) if used else ()
    trace: Figure = {
        "type": "scatter",
        "mode": "lines",
        "name": "loads",
        "x": [round(point.capacity_bytes / MIB, 1) for point in points],
        "y": [round(point.loads_per_minute, 2) for point in points],
        "line": {"color": "#0072B2", "width": 1.6, "shape": "hv"},
        "hovertemplate": "%{x} MiB: %{y} loads/min<extra></extra>",
    }
    at = round(now / MIB, 1)
    line: Figure = {"color": "#D55E00", "width": 1, "dash": "dash"}
    here: Figure = {"type": "line", "x0": at, "x1": at, "yref": "paper", "y0": 0, "y1": 1}
    label: Figure = {"x": at, "y": 1, "yref": "paper", "text": "now", "showarrow": False}
    layout: Figure = {
        "margin": {"l": 46, "r": 8, "t": 12, "b": 30},
        "showlegend": False,
        "xaxis": {"ticksuffix": " MiB", "nticks": 8, "showgrid": False, "rangemode": "tozero"},
        "yaxis": {"nticks": 5, "rangemode": "tozero"},
        "shapes": [here | {"line": line}],
        "annotations": [label | {"xanchor": "left"}],
        "uirevision": f"working_set{device.name}",
    }
    if not any(point.loads for point in points):
        layout["annotations"] = [charts.empty_note("No load would have been saved or added.")]
        layout["shapes"] = []
    return json.dumps({"data": [trace], "layout": layout})
