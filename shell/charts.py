"""Charts: frames in, Plotly figures out as JSON; reads nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from ops.recent import Mark
from shell.colours import LETTERS, MARKS, OTHER
from shell.frames import local_ms

Values = Sequence[float | None]
Figure = dict[str, object]
LATENCY_COLOURS = {"p50": "#56B4E9", "p95": "#0072B2", "p99": "#D55E00"}
TARGET_REACH = 2.5
"""A target is drawn up to so many times the highest value; above it is only named."""
ROW_TITLE_SHARE = 0.075
ORDER = ("load", "evict", "alert", "policy")
"""Of drawing marks: whoever comes last lies on top."""
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
            `target` for a dashed line at that value; `dotted` for the names of
            columns drawn so; `points` for dots; `empty` for the sentence that stands
            where nothing is drawn.
    """
    style = style or {}
    xs = [local_ms(instant) for instant in at_ms]
    data = [
        _line(name, values, colour=colours.get(name, OTHER), style=style)
        for name, values in columns.items()
    ]
    layout = _layout(style)
    shapes, notes = mark_shapes(marks, xs)
    highest = max((v for values in columns.values() for v in values if v), default=None)
    target = style.get("target")
    if highest is not None and isinstance(target, int | float):
        notes.append(_target_note(float(target), highest, unit=str(style.get("unit", ""))))
        shapes += _target(float(target), highest, xs=xs)
    if not any(value is not None for values in columns.values() for value in values):
        sentence = str(style.get("empty", "")) if xs else ""
        notes = [empty_note(sentence or "No samples yet: they come once a second.")]
    layout["shapes"], layout["annotations"] = shapes, notes
    return packed(data, layout, xs=xs)


def packed(data: Sequence[Figure], layout: Figure, *, xs: Sequence[int]) -> str:
    """Return a figure as JSON; instants stand once, not once per line."""
    document = {"data": list(data), "layout": layout, "x": list(xs)}
    return json.dumps(document, separators=(",", ":"))


def _line(
    name: str, values: Values, *, colour: str, style: Mapping[str, object], axis: str = "y"
) -> Figure:
    unit, dotted = style.get("unit", ""), style.get("dotted", ())
    trace: Figure = {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "y": [None if v is None else round(v * 100, 2) for v in values]
        if style.get("percent")
        else list(values),
        "yaxis": axis,
        "line": {"color": colour, "width": 1.6},
        "hovertemplate": f"%{{y:.4~g}} {unit}<extra>{name}</extra>",
    }
    if style.get("stacked"):
        trace |= {"stackgroup": "all", "line": {"color": colour, "width": 0.6}}
    elif isinstance(dotted, tuple) and name in dotted:
        trace |= {"line": {"color": colour, "width": 1.4, "dash": "dot"}}
    elif style.get("points"):
        trace |= {"mode": "markers", "marker": {"color": colour, "size": 4}}
    return trace


def _layout(style: Mapping[str, object]) -> Figure:
    yaxis: Figure = {"rangemode": "tozero", "ticksuffix": "", "nticks": 5, "fixedrange": False}
    if style.get("percent"):
        yaxis |= {"range": [0, 101], "ticksuffix": " %"}
    return {
        "margin": {"l": 46, "r": 8, "t": 18, "b": 20},
        "showlegend": True,
        "legend": {"orientation": "h", "y": -0.13, "x": 0, "yanchor": "top"},
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
    return [group for kind in ORDER for group in groups.get(kind, [])]


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


def _target(value: float, highest: float, *, xs: Sequence[int]) -> list[Figure]:
    """Return the line of a target; none where it would press the chart flat."""
    if value > highest * TARGET_REACH:
        return []
    line = {"color": OTHER, "width": 1, "dash": "dash"}
    ends = {"x0": xs[0], "x1": xs[-1], "y0": value, "y1": value}
    return [{"type": "line", "line": line, "layer": "below", **ends}]


def _target_note(value: float, highest: float, *, unit: str) -> Figure:
    is_near = value <= highest * TARGET_REACH
    text = f"SLO {value:g} {unit}" if is_near else f"SLO {value:g} {unit}, far above"
    where: Figure = {"y": value} if is_near else {"y": 1, "yref": "paper"}
    return {
        "x": 1,
        "xref": "paper",
        "xanchor": "right",
        "yanchor": "bottom",
        "showarrow": False,
        "text": text,
        "font": {"size": 10},
        **where,
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
        "margin": {"l": 46, "r": 8, "t": 18, "b": 20},
        "hovermode": "x",
        "uirevision": "loop",
        "showlegend": False,
        "xaxis": {**time_axis(), "anchor": f"y{count}" if count > 1 else "y"},
    }
    data: list[Figure] = []
    shapes, notes = mark_shapes(marks, xs)
    for index, (title, unit, columns) in enumerate(rows):
        axis = "y" if index == 0 else f"y{index + 1}"
        top, bottom = 1 - index / count, 1 - (index + 1) / count
        layout[axis.replace("y", "yaxis")] = _row_axis(unit, (bottom, top))
        style = {"unit": unit, "percent": unit == "%"}
        data += [
            _line(name, values, colour=colours.get(name, OTHER), style=style, axis=axis)
            for name, values in columns.items()
        ]
        notes.append(_row_title(f"{title}, {unit}", top))
    layout["shapes"], layout["annotations"] = shapes, notes
    return packed(data, layout, xs=xs)


def _row_axis(unit: str, ends: tuple[float, float]) -> Figure:
    """Return a row's axis, with room above for its title."""
    bottom, top = ends
    axis: Figure = {"domain": [bottom, top - ROW_TITLE_SHARE], "nticks": 3}
    return axis | ({"range": [0, 103]} if unit == "%" else {"rangemode": "tozero"})


def _row_title(text: str, top: float) -> Figure:
    return {
        "x": 0,
        "xref": "paper",
        "xanchor": "left",
        "y": top,
        "yref": "paper",
        "yanchor": "top",
        "showarrow": False,
        "text": text,
        "font": {"size": 11},
        "opacity": 0.8,
    }
