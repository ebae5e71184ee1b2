"""Budgets: bars of bytes - the pool of each device, its reserve, and the whole process."""

from __future__ import annotations

import json
from collections.abc import Sequence

from engine.memory.state import DeviceState
from engine.units import MIB, format_bytes
from ops.process_memory import ProcessState
from shell.charts import Figure
from shell.colours import FREE, HATCH, PALETTE

PARTS = {
    "context": "#0072B2",
    "libraries": "#56B4E9",
    "NCCL": "#E69F00",
    "slack": "#8C8C8C",
    "reserve": "#8C8C8C",
    "guard": "#CC79A7",
    "more": "#009E73",
}
Part = tuple[str, str, Sequence[int]]
"""Name, colour, bytes per row."""


def budget_bars(devices: Sequence[DeviceState]) -> str:
    """Return one bar per device: residents, leases, and what is free of the pool."""
    return _bars(
        [device.name for device in devices],
        (
            ("residents", "#0072B2", [d.resident_bytes for d in devices]),
            ("leases", "#009E73", [d.lease_bytes for d in devices]),
            ("free", FREE, [max(0, d.free_bytes) for d in devices]),
        ),
        revision="budget",
    )


def reserve_bars(devices: Sequence[DeviceState]) -> str:
    """Return one bar per device: what is never lent, by what it is kept for."""
    names = dict.fromkeys(part.name for device in devices for part in device.reserve_parts)
    sizes = [{part.name: part.size_bytes for part in d.reserve_parts} for d in devices]
    return _bars(
        [device.name for device in devices],
        [
            (name, PARTS.get(name, PALETTE[-1]), [parts.get(name, 0) for parts in sizes])
            for name in names
        ],
        revision="reserve",
    )


def process_bar(state: ProcessState) -> str:
    """Return one bar of the whole process by what is known to hold it."""
    return _bars(
        ["process"],
        (
            ("baseline", "#8C8C8C", [state.baseline_bytes]),
            ("weights", "#0072B2", [state.weight_bytes]),
            ("host copies", "#56B4E9", [state.host_bytes]),
            ("rest", "#E69F00", [state.rest_bytes]),
        ),
        revision="process",
    )


def _bars(rows: Sequence[str], parts: Sequence[Part], *, revision: str) -> str:
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": name,
            "y": list(rows),
            "x": [round(size / MIB, 2) for size in sizes],
            "customdata": [format_bytes(size) for size in sizes],
            "hovertemplate": f"{name}: %{{customdata}}<extra></extra>",
            "marker": _marker(name, colour),
        }
        for name, colour, sizes in parts
    ]
    layout: Figure = {
        "barmode": "stack",
        "bargap": 0.35,
        "margin": {"l": 56, "r": 8, "t": 4, "b": 44},
        "xaxis": {"ticksuffix": " MiB", "nticks": 8, "showgrid": False},
        "yaxis": {"type": "category"},
        "legend": {
            "orientation": "h",
            "y": 0,
            "yref": "container",
            "yanchor": "bottom",
            "traceorder": "normal",
        },
        "uirevision": revision,
    }
    return json.dumps({"data": data, "layout": layout})


def _marker(name: str, colour: str) -> Figure:
    if name == "free":
        return {
            "color": colour,
            "pattern": {"shape": "/", "fgcolor": HATCH, "size": 6, "solidity": 0.12},
            "line": {"color": HATCH, "width": 0.4},
        }
    return {"color": colour}
