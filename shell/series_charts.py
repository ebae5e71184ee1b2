"""Series charts: the charts over time that several pages draw, each in one place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ops.recent import Mark
from shell import charts, frames
from shell.colours import colour_of, colours_of
from storage.samples import DeviceSample, ModelSample

Models = Sequence[ModelSample]
Devices = Sequence[DeviceSample]
Marks = Sequence[Mark]
IDLE = "No request has completed here yet. The Load page starts some."


def latency(models: Models, *, marks: Marks, slo_ms: float | None = None) -> str:
    """Return p50, p95 and p99 over all models, and the SLO where it is near."""
    return charts.lines(
        frames.instants(models),
        frames.latency(models),
        colours=charts.LATENCY_COLOURS,
        marks=marks,
        style={"unit": "ms", "target": slo_ms, "empty": IDLE},
    )


def throughput(models: Models, *, known: Sequence[str], marks: Marks) -> str:
    """Return completed requests per second by model, stacked."""
    at_ms = frames.instants(models)
    columns = {
        name: frames.per_second(column, at_ms)
        for name, column in frames.per_model(models, lambda m: m.completed).items()
    }
    return _by_model(models, columns, known=known, marks=marks, style={"unit": "req/s"})


def queue(models: Models, *, known: Sequence[str], marks: Marks) -> str:
    """Return waiting items by model, stacked."""
    columns = frames.per_model(models, lambda m: m.queued_items)
    style: dict[str, object] = {"unit": "items", "empty": "Nothing has waited here."}
    return _by_model(models, columns, known=known, marks=marks, style=style)


def _by_model(
    models: Models,
    columns: Mapping[str, list[float]],
    *,
    known: Sequence[str],
    marks: Marks,
    style: Mapping[str, object],
) -> str:
    return charts.lines(
        frames.instants(models),
        frames.busiest(columns),
        colours=colours_of(known),
        marks=marks,
        style={"stacked": True, "empty": IDLE, **style},
    )


def batch_sizes(models: Models, *, known: Sequence[str], marks: Marks) -> str:
    """Return items per batch by model; a gap where no batch ran."""
    columns = {
        name: [value or None for value in column]
        for name, column in frames.per_model(
            models, lambda m: m.items / m.batches if m.batches else 0
        ).items()
    }
    return charts.lines(
        frames.instants(models),
        {name: column for name, column in columns.items() if any(column)},
        colours=colours_of(known),
        marks=marks,
        style={"unit": "items", "points": True, "empty": "No batch has run here yet."},
    )


def wait_and_service(models: Models, *, marks: Marks) -> str:
    """Return the mean wait and the mean time on the device, stacked."""
    return charts.lines(
        frames.instants(models),
        frames.wait_and_service(models),
        colours={"wait": "#E69F00", "service": "#0072B2"},
        marks=marks,
        style={"unit": "ms", "stacked": True, "empty": IDLE},
    )


def offered(models: Models, *, marks: Marks) -> str:
    """Return what was asked of some models and what they completed, per second."""
    at_ms = frames.instants(models)

    def rate(value: Callable[[ModelSample], float]) -> list[float]:
        return frames.smooth(frames.per_second(frames.totals(models, value), at_ms))

    columns = {
        "offered": rate(lambda m: m.submitted + m.refused),
        "completed": rate(lambda m: m.completed),
        "lost": rate(lambda m: m.failed + m.refused + m.expired),
    }
    return charts.lines(
        at_ms,
        {name: column for name, column in columns.items() if name != "lost" or any(column)},
        colours={"offered": "#8C8C8C", "completed": "#009E73", "lost": "#D55E00"},
        marks=marks,
        style={"unit": "req/s", "dotted": ("offered",)},
    )


def memory(devices: Devices, *, marks: Marks) -> str:
    """Return every device's utilisation, and dotted its external fragmentation."""
    used = frames.per_device(devices, lambda d: d.utilisation)
    broken = frames.per_device(devices, lambda d: d.external_fragmentation)
    dotted = {f"{name} fragmentation": column for name, column in broken.items()}
    colours = {name: colour_of(name, list(used)) for name in used}
    return charts.lines(
        frames.instants(devices),
        {**used, **dotted},
        colours=colours | {f"{name} fragmentation": c for name, c in colours.items()},
        marks=marks,
        style={"unit": "%", "percent": True, "dotted": tuple(dotted)},
    )


def fragmentation(devices: Devices, *, marks: Marks) -> str:
    """Return each device's external fragmentation, and dotted what is unusable."""
    broken = frames.per_device(devices, lambda d: d.external_fragmentation)
    cannot = frames.per_device(devices, lambda d: d.unusable)
    dotted = {f"{name} unusable": column for name, column in cannot.items()}
    colours = {name: colour_of(name, list(broken)) for name in broken}
    return charts.lines(
        frames.instants(devices),
        {**broken, **dotted},
        colours=colours | {f"{name} unusable": colour for name, colour in colours.items()},
        marks=marks,
        style={"unit": "%", "percent": True, "dotted": tuple(dotted)},
    )


def busy(devices: Devices, *, marks: Marks) -> str:
    """Return the share of each second in which a batch ran."""
    columns = frames.per_device(devices, lambda d: min(1.0, d.busy))
    return charts.lines(
        frames.instants(devices),
        columns,
        colours={name: colour_of(name, list(columns)) for name in columns},
        marks=marks,
        style={"unit": "%", "percent": True},
    )


def loop(models: Models, devices: Devices, *, marks: Marks) -> str:
    """Return the feedback loop: what is held, how broken up, how fast; one time axis."""
    used = frames.per_device(devices, lambda d: d.utilisation)
    broken = frames.per_device(devices, lambda d: d.external_fragmentation)
    waiting = frames.totals(models, lambda m: m.queued_items)
    colours = {name: colour_of(name, list(used)) for name in used}
    return charts.loop_panel(
        frames.instants(devices),
        (
            ("Utilisation of the pools", "%", used),
            ("External fragmentation", "%", broken),
            ("Queue", "items", {"queue": waiting}),
            ("Latency p99", "ms", {"p99": frames.latency(models)["p99"]}),
        ),
        colours={**colours, **charts.LATENCY_COLOURS, "queue": "#CC79A7"},
        marks=marks,
    )
