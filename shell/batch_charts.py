"""Batch charts: sizes of the last batches, and why they left; decisions in, figures out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from engine.decisions import Decision
from shell.charts import Figure, empty_note, packed
from shell.colours import colour_of

NONE_YET = "No batch has left yet. The Load page starts some."
BOUND_COLOURS = {
    "queue": "#56B4E9",
    "high": "#0072B2",
    "memory_cap": "#D55E00",
    "max_batch_ms": "#E69F00",
    "marginal_gain": "#CC79A7",
}


def counts(batches: Sequence[Decision], *, known: Sequence[str]) -> str:
    """Return how many batches of each size left, stacked by model."""
    sizes: dict[str, Counter[int]] = {}
    for batch in batches:
        items = dict(batch.numbers).get("items")
        if isinstance(items, int):
            sizes.setdefault(batch.model, Counter())[items] += 1
    data = [
        _bar(name, x=[str(n) for n in sorted(counted)], y=[counted[n] for n in sorted(counted)])
        | {"marker": {"color": colour_of(name, known)}}
        for name, counted in sorted(sizes.items())
    ]
    present = sorted({size for counted in sizes.values() for size in counted})
    axis: Figure = {
        "type": "category",
        "showgrid": False,
        "categoryorder": "array",
        "categoryarray": [str(size) for size in present],
        "title": {"text": "items", "standoff": 4},
    }
    return _drawn(data, {"xaxis": axis, "yaxis": {"title": {"text": "batches"}, "nticks": 5}})


def reasons(batches: Sequence[Decision]) -> str:
    """Return how many batches left for each reason, split by what bound their size."""
    found: dict[str, Counter[str]] = {}
    for batch in batches:
        bound = str(dict(batch.numbers).get("bound", "queue"))
        found.setdefault(bound, Counter())[batch.reason.value.replace("_", " ")] += 1
    data = [
        _bar(f"bound by {bound.replace('_', ' ')}", x=list(counted.values()), y=list(counted))
        | {"orientation": "h", "marker": {"color": BOUND_COLOURS.get(bound, "#8C8C8C")}}
        for bound, counted in sorted(found.items())
    ]
    layout: Figure = {
        "xaxis": {"title": {"text": "batches", "standoff": 4}, "nticks": 6},
        "yaxis": {"type": "category", "showgrid": False},
    }
    return _drawn(data, layout)


def _bar(name: str, *, x: Sequence[object], y: Sequence[object]) -> Figure:
    return {"type": "bar", "name": name, "x": list(x), "y": list(y)}


def _drawn(data: list[Figure], axes: Figure) -> str:
    layout: Figure = {
        "barmode": "stack",
        "bargap": 0.2,
        "margin": {"l": 46, "r": 8, "t": 18, "b": 56},
        "showlegend": True,
        "legend": {"orientation": "h", "y": 0, "yref": "container", "yanchor": "bottom"},
        "uirevision": "keep",
        "annotations": [] if data else [empty_note(NONE_YET)],
    }
    return packed(data, layout | axes, xs=())
