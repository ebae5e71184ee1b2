"""Tiles: the five figures on top of the Overview, each with its recent course."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from ops.station import Station
from shell import frames
from shell.words import figure, milliseconds
from storage.samples import DeviceSample, ModelSample

COURSE_SECONDS = 60
SMOOTH = 5


@dataclass(frozen=True, slots=True)
class Tile:
    """Hold one figure: its text, what to compare it with, its course."""

    label: str
    value: str
    note: str
    course: Sequence[float]
    help: str
    is_bad: bool = False


@dataclass(frozen=True, slots=True)
class Tiles:
    """Hold the five figures, and which models miss their SLO."""

    tiles: tuple[Tile, ...]
    missed: tuple[str, ...]

    def breach(self) -> str:
        """Return the sentence of the banner; "" when all is well."""
        if not self.missed:
            return ""
        return f"Slower than the SLO in the last {SMOOTH} s: {', '.join(self.missed)}"

    def draw(self) -> None:
        """Draw them in a row."""
        for column, tile in zip(st.columns(5), self.tiles, strict=True):
            column.metric(
                tile.label,
                tile.value,
                tile.note or None,
                delta_color="red" if tile.is_bad else "off",
                delta_arrow="off",
                chart_data=list(tile.course) or None,
                chart_type="line",
                border=True,
                help=tile.help,
            )


def tiles(station: Station, seconds: int) -> Tiles:
    """Return the figures of the last seconds."""
    models = station.recent.models(COURSE_SECONDS)
    devices = station.recent.devices(COURSE_SECONDS)
    return Tiles(
        (
            _throughput(models),
            _latency(models, strictest_slo_ms(station, models)),
            _queue(models),
            _memory(devices),
            _evictions(station.recent.models(seconds), seconds),
        ),
        _missed(station, models),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _change(values: Sequence[float], unit: str) -> str:
    """Return how a figure moved in half a minute; "steady" without as much history."""
    if len(values) < 30 + SMOOTH:
        return "steady"
    change = _mean(values[-SMOOTH:]) - _mean(values[-30 - SMOOTH : -30])
    sign = "+" if change > 0 else "−" if change < 0 else "±"
    return f"{sign}{figure(abs(change))} {unit} vs 30 s ago"


def strictest_slo_ms(station: Station, models: Sequence[ModelSample]) -> float | None:
    """Return the shortest SLO of the models that completed something; None: none did."""
    active = {sample.model for sample in models if sample.completed}
    policy = station.engine.policy
    return min((policy.model(name).slo_ms for name in active), default=None)


def _throughput(models: Sequence[ModelSample]) -> Tile:
    done = frames.totals(models, lambda m: m.completed)
    good = frames.totals(models, lambda m: m.good)
    last, met = _mean(done[-SMOOTH:]), _mean(good[-SMOOTH:])
    return Tile(
        "Throughput",
        f"{figure(last)} req/s",
        f"{met / last:.0%} within SLO" if last else "idle",
        frames.smooth(done),
        f"Completed requests of all models per second, mean of the last {SMOOTH} s; "
        "below: the share of them that is goodput.",
    )


def _latency(models: Sequence[ModelSample], slo_ms: float | None) -> Tile:
    course = [value or 0.0 for value in frames.latency(models)["p99"]]
    recent = [sample for sample in models if sample.at_ms > _since(models)]
    found = frames.percentiles_ms(tuple(s.latency for s in recent if s.completed))
    is_bad = found is not None and slo_ms is not None and found[2] > slo_ms
    note = "no result yet" if slo_ms is None else f"SLO {milliseconds(slo_ms)}"
    return Tile(
        "p99 latency",
        "–" if found is None else milliseconds(found[2]),
        f"above {note}" if is_bad else note,
        course,
        f"From arrival to result, all models, over the last {SMOOTH} s; below: the "
        "strictest SLO of the models that were asked.",
        is_bad,
    )


def _since(samples: Sequence[ModelSample]) -> int:
    return max((s.at_ms for s in samples), default=0) - SMOOTH * 1000


def _queue(models: Sequence[ModelSample]) -> Tile:
    waiting = frames.totals(models, lambda m: m.queued_items)
    now = waiting[-1] if waiting else 0
    return Tile(
        "Queue",
        f"{now:.0f} items",
        _change(waiting, "items"),
        waiting,
        "Items that wait for a batch, all models.",
    )


def _memory(devices: Sequence[DeviceSample]) -> Tile:
    columns = frames.per_device(devices, lambda d: d.utilisation)
    rows = zip(*columns.values(), strict=True)
    course = [100 * _mean([v for v in row if v is not None]) for row in rows]
    broken = frames.per_device(devices, lambda d: d.external_fragmentation)
    worst = max((column[-1] or 0.0 for column in broken.values()), default=0.0)
    return Tile(
        "Memory used",
        f"{figure(course[-1] if course else 0)} %",
        f"fragmentation {100 * worst:.0f} %",
        course,
        "Held share of the pools, mean of the devices; below: the worst external "
        "fragmentation of a device.",
    )


def _evictions(models: Sequence[ModelSample], seconds: int) -> Tile:
    gone = frames.totals(models, lambda m: m.evictions)
    loads = int(sum(frames.totals(models, lambda m: m.loads)))
    return Tile(
        f"Evictions, {seconds // 60} min",
        f"{sum(gone):.0f}",
        f"{loads} loads",
        gone[-COURSE_SECONDS:],
        "Models whose weights were dropped to make room.",
    )


def _missed(station: Station, models: Sequence[ModelSample]) -> tuple[str, ...]:
    since = _since(models)
    missed: list[str] = []
    for name in station.engine.models:
        rows = [s.latency for s in models if s.model == name and s.at_ms > since]
        found = frames.percentiles_ms(tuple(rows)) if rows else None
        slo_ms = station.engine.policy.model(name).slo_ms
        if found is not None and found[2] > slo_ms:
            missed.append(f"{name} (p99 {milliseconds(found[2])}, SLO {milliseconds(slo_ms)})")
    return tuple(missed)
