"""Series charts: the charts over time that several pages draw, each in one place."""

from __future__ import annotations

from collections.abc import Sequence

from ops.recent import Mark
from shell import charts, frames
from shell.colours import colour_of
from storage.samples import DeviceSample, ModelSample

Models = Sequence[ModelSample]
Devices = Sequence[DeviceSample]
Marks = Sequence[Mark]


def latency(models: Models, *, marks: Marks) -> str:
    """Return p50, p95 and p99 over all models."""
    return charts.lines(
        frames.instants(models),
        frames.latency(models),
        colours=charts.LATENCY_COLOURS,
        marks=marks,
        style={"unit": "ms"},
    )


def throughput(models: Models, *, known: Sequence[str], marks: Marks, unit: str) -> str:
    """Return completed requests by model, stacked."""
    columns = frames.per_model(models, lambda m: m.completed)
    return _by_model(
        models, columns, known=known, marks=marks, style={"unit": unit, "stacked": True}
    )


def queue(models: Models, *, known: Sequence[str], marks: Marks) -> str:
    """Return waiting items by model, stacked."""
    columns = frames.per_model(models, lambda m: m.queued_items)
    return _by_model(
        models, columns, known=known, marks=marks, style={"unit": "items", "stacked": True}
    )


def batch_sizes(models: Models, *, known: Sequence[str], marks: Marks) -> str:
    """Return items per batch by model."""
    columns = frames.per_model(models, lambda m: m.items / m.batches if m.batches else 0)
    return _by_model(models, columns, known=known, marks=marks, style={"unit": "items"})


def _by_model(
    models: Models,
    columns: dict[str, list[float]],
    *,
    known: Sequence[str],
    marks: Marks,
    style: dict[str, object],
) -> str:
    colours = {name: colour_of(name, known) for name in known}
    return charts.lines(
        frames.instants(models), columns, colours=colours, marks=marks, style=style
    )


def utilisation(devices: Devices, *, marks: Marks) -> str:
    """Return the held share of every device's pool."""
    return _shares(devices, frames.per_device(devices, lambda d: d.utilisation), marks=marks)


def fragmentation(devices: Devices, *, marks: Marks) -> str:
    """Return every device's external fragmentation."""
    columns = frames.per_device(devices, lambda d: d.external_fragmentation)
    return _shares(devices, columns, marks=marks)


def busy(devices: Devices, *, marks: Marks) -> str:
    """Return the share of each second in which a batch ran."""
    return _shares(devices, frames.per_device(devices, lambda d: min(1.0, d.busy)), marks=marks)


def _shares(devices: Devices, columns: dict[str, list[float | None]], *, marks: Marks) -> str:
    return charts.lines(
        frames.instants(devices),
        columns,
        colours={name: colour_of(name, list(columns)) for name in columns},
        marks=marks,
        style={"unit": "%", "percent": True},
    )


def loop(models: Models, devices: Devices, *, marks: Marks) -> str:
    """Return the feedback loop: utilisation, fragmentation and latency over one time axis."""
    used = frames.per_device(devices, lambda d: d.utilisation)
    broken = frames.per_device(devices, lambda d: d.external_fragmentation)
    p99 = frames.latency(models)["p99"]
    colours = {name: colour_of(name, list(used)) for name in used}
    return charts.loop_panel(
        frames.instants(devices),
        (
            ("Utilisation of the pools", "%", used),
            ("External fragmentation", "%", broken),
            ("Latency p99", "ms", {"p99": p99}),
        ),
        colours={**colours, **charts.LATENCY_COLOURS},
        marks=marks,
    )
