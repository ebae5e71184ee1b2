"""Series: samples thinned to the width of a chart, so that a spike survives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TypeVar

from engine.metrics import LatencyHistogram
from storage.samples import DeviceSample, ModelSample

S = TypeVar("S", DeviceSample, ModelSample)
COUNTS = (
    "submitted",
    "completed",
    "failed",
    "refused",
    "expired",
    "cancelled",
    "items",
    "batches",
    "good",
    "loads",
    "evictions",
    "loaded_bytes",
)
HISTOGRAMS = ("latency", "queueing", "service")


def bucket_ms(start_ms: int, end_ms: int, *, points: int) -> int:
    """Return the width of a bucket so that at most `points` of them cover the window."""
    return max(1000, -(-(end_ms - start_ms) // max(1, points)))


def thin_devices(
    samples: Sequence[DeviceSample], *, start_ms: int, end_ms: int, points: int | None
) -> tuple[DeviceSample, ...]:
    """Keep of every device and bucket the samples of lowest and highest use, in time order.

    Levels are not averaged: a chart of averages hides the second in which
    the memory was full.
    """
    if points is None:
        return tuple(samples)
    width_ms = bucket_ms(start_ms, end_ms, points=points)
    kept: list[DeviceSample] = []
    for bucket in _buckets(samples, start_ms=start_ms, width_ms=width_ms):
        by_device: dict[str, list[DeviceSample]] = {}
        for sample in bucket:
            by_device.setdefault(sample.device, []).append(sample)
        for several in by_device.values():
            extremes = {
                min(several, key=lambda s: s.utilisation),
                max(several, key=lambda s: s.utilisation),
                max(several, key=lambda s: s.external_fragmentation),
            }
            kept += sorted(extremes, key=lambda s: s.at_ms)
    kept.sort(key=lambda s: (s.at_ms, s.device))
    return tuple(kept)


def thin_models(
    samples: Sequence[ModelSample], *, start_ms: int, end_ms: int, points: int | None
) -> tuple[ModelSample, ...]:
    """Merge every model's samples of a bucket: counts add up, histograms merge, queues peak."""
    if points is None:
        return tuple(samples)
    width_ms = bucket_ms(start_ms, end_ms, points=points)
    merged: list[ModelSample] = []
    for bucket in _buckets(samples, start_ms=start_ms, width_ms=width_ms):
        by_model: dict[str, list[ModelSample]] = {}
        for sample in bucket:
            by_model.setdefault(sample.model, []).append(sample)
        merged += [merge_models(several) for several in by_model.values()]
    merged.sort(key=lambda s: (s.at_ms, s.model))
    return tuple(merged)


def merge_models(samples: Sequence[ModelSample]) -> ModelSample:
    """Return several samples of one model as one, at the instant of the last."""
    if len(samples) == 1:
        return samples[0]
    peak = replace(samples[-1], queued_items=max(s.queued_items for s in samples))
    counts = {name: sum(getattr(s, name) for s in samples) for name in COUNTS}
    whole = replace(peak, **counts)
    return replace(
        whole,
        latency=_merge(s.latency for s in samples),
        queueing=_merge(s.queueing for s in samples),
        service=_merge(s.service for s in samples),
    )


def _merge(packed: Iterable[bytes]) -> bytes:
    whole = LatencyHistogram()
    for one in packed:
        whole.merge(LatencyHistogram.from_bytes(one))
    return whole.to_bytes()


def _buckets(samples: Iterable[S], *, start_ms: int, width_ms: int) -> Iterable[list[S]]:
    for _, bucket in groupby(samples, key=lambda s: (s.at_ms - start_ms) // width_ms):
        yield list(bucket)
