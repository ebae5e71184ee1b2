"""Charts: frames in, Plotly figures out as JSON; reads nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from ops.recent import Mark
from shell.colours import LETTERS, MARKS, PALETTE
from shell.frames import local_ms

Values = Sequence[float | None]
Figure = dict[str, object]
LATENCY_COLOURS = {"p50": "#56B4E9", "p95": "#0072B2", "p99": "#D55E00"}
CLOSE_SHARE = 0.02
"""Marks closer than this share of the axis are drawn as one flag with their number."""


def lines(
    at_ms: Sequence[int],
    columns: Mapping[str, Values],
    *,
    colours: Mapping[str, str],
    marks: Sequence[Mark] = (),
    style: Mapping[str, object] | None = None,
) -> str:
    """Return a line chart of named columns over time.

    Args:
        style: `unit` of the values; `stacked` for areas; `percent` for 0 to 100 %;
            `target` for a dashed line at that value; `fill` for filled lines.
    """
    style = style or {}
    xs = [local_ms(instant) for instant in at_ms]
    data = [
        _line(name, xs, values=values, colour=colours.get(name, PALETTE[0]), style=style)
        for name, values in columns.items()
    ]
    layout = _layout(style)
    shapes, notes = mark_shapes(marks, xs)
    target = style.get("target")
    if isinstance(target, int | float) and xs:
        shapes.append(_target(float(target), xs))
        notes.append(_target_note(float(target), str(style.get("unit", ""))))
    layout["shapes"], layout["annotations"] = shapes, notes
    if not xs:
        layout["annotations"] = [empty_note("No samples yet: they come once a second.")]
    return json.dumps({"data": data, "layout": layout})


def _line(
    name: str,
    xs: Sequence[int],
    *,
    values: Values,
    colour: str,
    style: Mapping[str, object],
) -> Figure:
    trace: Figure = {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": list(xs),
        "y": [None if v is None else v * 100 for v in values]
        if style.get("percent")
        else list(values),
        "line": {"color": colour, "width": 1.6},
        "hovertemplate": f"%{{y:.4~g}} {style.get('unit', '')}<extra>{name}</extra>",
    }
    if style.get("stacked"):
        trace |= {"stackgroup": "all", "line": {"color": colour, "width": 0.6}}
    elif style.get("fill"):
        trace |= {"fill": "tozeroy"}
    return trace


def _layout(style: Mapping[str, object]) -> Figure:
    yaxis: Figure = {"rangemode": "tozero", "ticksuffix": "", "nticks": 5, "fixedrange": False}
    if style.get("percent"):
        yaxis |= {"range": [0, 101], "ticksuffix": " %"}
    return {
        "margin": {"l": 46, "r": 10, "t": 22, "b": 24},
        "showlegend": True,
        "legend": {"orientation": "h", "y": -0.16, "x": 0, "yanchor": "top"},
        "hovermode": "x unified",
        "uirevision": "keep",
        "xaxis": time_axis(),
        "yaxis": yaxis,
    }


def time_axis() -> Figure:
    """Return the axis of local time that all charts share."""
    return {"type": "date", "tickformat": "%H:%M:%S", "nticks": 6, "showgrid": False}


def mark_shapes(marks: Sequence[Mark], xs: Sequence[int]) -> tuple[list[Figure], list[Figure]]:
    """Return lines and flags for what happened; flags that would overlap become one."""
    if not xs:
        return [], []
    shapes: list[Figure] = []
    notes: list[Figure] = []
    close_ms = max(1.0, (xs[-1] - xs[0]) * CLOSE_SHARE)
    for group in _groups([m for m in marks if local_ms(m.at_ms) >= xs[0]], close_ms):
        first = group[0]
        colour = MARKS[first.kind]
        at = local_ms(first.at_ms)
        dash = {"policy": "dash", "evict": "dot"}.get(first.kind, "solid")
        shapes.append(_vertical(at, colour=colour, dash=dash))
        letter = LETTERS[first.kind]
        notes.append(
            {
                "x": at,
                "y": 1.0,
                "yref": "paper",
                "yanchor": "bottom",
                "showarrow": False,
                "text": letter if len(group) == 1 else f"{len(group)}{letter}",
                "hovertext": "<br>".join(mark.text for mark in group[:8]),
                "font": {"color": "#ffffff", "size": 9},
                "bgcolor": colour,
                "borderpad": 2,
            }
        )
    return shapes, notes


def _groups(marks: Sequence[Mark], close_ms: float) -> list[list[Mark]]:
    groups: dict[str, list[list[Mark]]] = {}
    for mark in marks:
        rows = groups.setdefault(mark.kind, [])
        if rows and mark.at_ms - rows[-1][0].at_ms < close_ms:
            rows[-1].append(mark)
        else:
            rows.append([mark])
    return [group for rows in groups.values() for group in rows]


def _vertical(at: int, *, colour: str, dash: str) -> Figure:
    line = {"color": colour, "width": 1.2, "dash": dash}
    return {
        "type": "line",
        "x0": at,
        "x1": at,
        "y0": 0,
        "y1": 1,
        "yref": "paper",
        "line": line,
        "layer": "above",
    }


def _target(value: float, xs: Sequence[int]) -> Figure:
    line = {"color": "#999999", "width": 1, "dash": "dash"}
    return {"type": "line", "x0": xs[0], "x1": xs[-1], "y0": value, "y1": value, "line": line}


def _target_note(value: float, unit: str) -> Figure:
    return {
        "x": 1,
        "xref": "paper",
        "xanchor": "right",
        "y": value,
        "yanchor": "bottom",
        "showarrow": False,
        "text": f"SLO {value:g} {unit}",
        "font": {"size": 10},
    }


def empty_note(text: str) -> Figure:
    """Return the sentence that stands where a chart has nothing to show."""
    return {
        "x": 0.5,
        "y": 0.5,
        "xref": "paper",
        "yref": "paper",
        "showarrow": False,
        "text": text,
        "font": {"size": 12},
    }


def loop_panel(
    at_ms: Sequence[int],
    rows: Sequence[tuple[str, str, Mapping[str, Values]]],
    *,
    colours: Mapping[str, str],
    marks: Sequence[Mark],
) -> str:
    """Return the feedback loop as one picture: rows over one time axis, marks through all.

    Args:
        rows: (title, unit, columns), from top to bottom; shares are given 0 to 1.
    """
    xs = [local_ms(instant) for instant in at_ms]
    count = len(rows)
    layout: Figure = {
        "margin": {"l": 52, "r": 10, "t": 24, "b": 24},
        "hovermode": "x",
        "uirevision": "loop",
        "showlegend": False,
        "xaxis": {**time_axis(), "anchor": f"y{count}" if count > 1 else "y"},
    }
    data: list[Figure] = []
    shapes, notes = mark_shapes(marks, xs)
    for index, (title, unit, columns) in enumerate(rows):
        axis = "y" if index == 0 else f"y{index + 1}"
        top = 1 - index / count
        name = axis.replace("y", "yaxis")
        bottom = 1 - (index + 1) / count + 0.05
        layout[name] = {"domain": [bottom, top], "rangemode": "tozero", "nticks": 4}
        if unit == "%":
            layout[name] = {"domain": [bottom, top], "range": [0, 103], "nticks": 4}
        style = {"unit": unit, "percent": unit == "%"}
        for column, values in columns.items():
            colour = colours.get(column, PALETTE[0])
            data.append(
                _line(column, xs, values=values, colour=colour, style=style) | {"yaxis": axis}
            )
        notes.append(_row_title(f"{title}, {unit}", top))
    layout["shapes"], layout["annotations"] = shapes, notes
    return json.dumps({"data": data, "layout": layout})


def _row_title(text: str, top: float) -> Figure:
    return {
        "x": 0.004,
        "xref": "paper",
        "xanchor": "left",
        "y": top,
        "yref": "paper",
        "yanchor": "top",
        "showarrow": False,
        "text": text,
        "font": {"size": 10},
        "opacity": 0.75,
    }
