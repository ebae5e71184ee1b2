"""Strip: a device's arena, block by block at its addresses, and its budgets as bars."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from engine.memory.state import BlockState, ResidentState
from engine.units import MIB, format_bytes
from shell.charts import Figure
from shell.colours import FREE, HATCH, PALETTE

ColourBy = Literal["Model", "Kind", "Age"]
KIND_COLOURS = {
    "guard": "#8C8C8C",
    "resident": "#0072B2",
    "loading": "#56B4E9",
    "evicting": "#E69F00",
    "moving": "#CC79A7",
    "claimed": "#D55E00",
    "lease": "#009E73",
    "hole": FREE,
}
AGES = ((10, "used in the last 10 s"), (60, "last minute"), (600, "last 10 min"))


class Tiled(Protocol):
    """Be a device whose arena is drawn: as it is now, or as it was."""

    @property
    def name(self) -> str:
        """Return its name."""
        ...

    @property
    def blocks(self) -> Sequence[BlockState]:
        """Return blocks and holes that tile the arena."""
        ...

    @property
    def residents(self) -> Sequence[ResidentState]:
        """Return what more is known of the weights in them."""
        ...


def address_strip(
    devices: Sequence[Tiled],
    *,
    colour_by: ColourBy,
    colours: Mapping[str, str],
    whole: bool,
    now_ns: int,
) -> str:
    """Return all arenas as rows of rectangles; together the blocks tile the range.

    Args:
        whole: Show the whole range first, not only as far as something is held.
    """
    groups: dict[str, Figure] = {}
    for device in devices:
        residents = {r.offset: r for r in device.residents}
        for block in device.blocks:
            resident = residents.get(block.offset)
            label = _label(block, resident, colour_by=colour_by, now_ns=now_ns)
            trace = groups.setdefault(
                label, _trace(label, block, colour_by=colour_by, colours=colours)
            )
            _add(trace, device.name, block=block, text=_hover(block, resident, now_ns=now_ns))
    layout: Figure = {
        "barmode": "overlay",
        "bargap": 0.25,
        "margin": {"l": 46, "r": 8, "t": 4, "b": 44},
        "xaxis": {
            "ticksuffix": " MiB",
            "nticks": 8,
            "showgrid": False,
            "range": [0, _shown_mib(devices, whole=whole)],
        },
        "yaxis": {"type": "category", "showgrid": False},
        "legend": {"orientation": "h", "y": 0, "yref": "container", "yanchor": "bottom"},
        "uirevision": f"{colour_by}{whole}",
    }
    return json.dumps({"data": list(groups.values()), "layout": layout})


def _shown_mib(devices: Sequence[Tiled], *, whole: bool) -> float:
    """Return where the axis ends: a little beyond what is held, or at the largest arena."""
    blocks = [block for device in devices for block in device.blocks]
    end = max((b.offset + b.size_bytes for b in blocks), default=MIB)
    held = max((b.offset + b.size_bytes for b in blocks if b.kind != "hole"), default=0)
    return (end if whole else min(end, held * 1.25)) / MIB


def _label(
    block: BlockState, resident: ResidentState | None, *, colour_by: ColourBy, now_ns: int
) -> str:
    if block.kind == "hole":
        return "free"
    if block.kind == "guard" or colour_by == "Kind":
        return block.kind
    if colour_by == "Model":
        return block.model or block.kind
    if resident is None:
        return block.kind
    idle_s = (now_ns - resident.last_used_ns) / 1e9
    return next((text for limit, text in AGES if idle_s < limit), "older")


def _trace(
    label: str, block: BlockState, *, colour_by: ColourBy, colours: Mapping[str, str]
) -> Figure:
    ages = [text for _, text in AGES] + ["older"]
    colour = KIND_COLOURS.get(block.kind, PALETTE[-1])
    if block.kind not in ("hole", "guard") and colour_by == "Model":
        colour = colours.get(block.model, PALETTE[-1])
    elif label in ages:
        colour = ("#D55E00", "#E69F00", "#56B4E9", "#8C8C8C")[ages.index(label)]
    marker: Figure = {"color": colour, "line": {"color": "rgba(255,255,255,0.6)", "width": 0.6}}
    if block.kind in ("hole", "evicting", "claimed"):
        marker["pattern"] = {"shape": "/", "fgcolor": HATCH, "size": 6, "solidity": 0.12}
        marker["line"] = {"color": HATCH, "width": 0.4}
    return {
        "type": "bar",
        "orientation": "h",
        "name": label,
        "base": [],
        "x": [],
        "y": [],
        "customdata": [],
        "marker": marker,
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _add(trace: Figure, device: str, *, block: BlockState, text: str) -> None:
    values = {
        "base": round(block.offset / MIB, 3),
        "x": round(block.size_bytes / MIB, 3),
        "y": device,
        "customdata": text,
    }
    for name, value in values.items():
        column = trace[name]
        assert isinstance(column, list), "a trace's columns are lists"
        column.append(value)


def _hover(block: BlockState, resident: ResidentState | None, *, now_ns: int) -> str:
    size = format_bytes(block.size_bytes)
    where = f"{size} at {format_bytes(block.offset)}"
    if resident is None:
        return f"<b>{block.model or block.kind}</b><br>{block.kind}, {where}"
    idle_s = max(0.0, (now_ns - resident.last_used_ns) / 1e9)
    return (
        f"<b>{resident.model}</b><br>{where}<br>{resident.precision}, class "
        f"{resident.priority_class}, used {idle_s:.0f} s ago, {resident.loads} loads"
        + (", pinned" if resident.pinned else "")
    )
