"""Frames: samples of seconds as columns that charts draw; reads nothing, knows no page."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import lru_cache

from engine.metrics import LatencyHistogram
from storage.samples import DeviceSample, ModelSample

Columns = dict[str, list[float | None]]


def local_ms(at_ms: int) -> int:
    """Return an instant shifted so that a chart's axis shows the machine's local time."""
    return at_ms + time.localtime(at_ms / 1000).tm_gmtoff * 1000


def instants(samples: Sequence[DeviceSample] | Sequence[ModelSample]) -> list[int]:
    """Return the seconds that the samples are from, ascending, in epoch milliseconds."""
    return sorted({sample.at_ms for sample in samples})


@lru_cache(maxsize=8192)
def percentiles_ms(packed: tuple[bytes, ...]) -> tuple[float, float, float] | None:
    """Return p50, p95 and p99 of merged histograms; None when nothing was counted.

    Remembered by content: each second is computed once, however many tabs look.
    """
    whole = LatencyHistogram()
    for one in packed:
        whole.merge(LatencyHistogram.from_bytes(one))
    if not whole.count:
        return None
    p50, p95, p99 = (round(whole.percentile_ns(share) / 1e6, 2) for share in (0.5, 0.95, 0.99))
    return p50, p95, p99


def latency(samples: Sequence[ModelSample]) -> Columns:
    """Return p50, p95 and p99 in milliseconds per second over all models."""
    grouped: dict[int, list[bytes]] = {at_ms: [] for at_ms in instants(samples)}
    for sample in samples:
        if sample.completed:
            grouped[sample.at_ms].append(sample.latency)
    rows = [percentiles_ms(tuple(packed)) for packed in grouped.values()]
    return {
        name: [None if row is None else row[index] for row in rows]
        for index, name in enumerate(("p50", "p95", "p99"))
    }


def per_model(
    samples: Sequence[ModelSample], value: Callable[[ModelSample], float]
) -> dict[str, list[float]]:
    """Return one column per model, 0 where it has no sample; in the order of names."""
    at = {at_ms: index for index, at_ms in enumerate(instants(samples))}
    columns: dict[str, list[float]] = {}
    for sample in samples:
        column = columns.setdefault(sample.model, [0.0] * len(at))
        column[at[sample.at_ms]] = round(value(sample), 3)
    return dict(sorted(columns.items()))


def per_device(
    samples: Sequence[DeviceSample], value: Callable[[DeviceSample], float]
) -> dict[str, list[float | None]]:
    """Return one column per device, None where it has no sample; in the order of names."""
    at = {at_ms: index for index, at_ms in enumerate(instants(samples))}
    columns: dict[str, list[float | None]] = {}
    for sample in samples:
        column = columns.setdefault(sample.device, [None] * len(at))
        column[at[sample.at_ms]] = round(value(sample), 4)
    return dict(sorted(columns.items()))


def totals(
    samples: Sequence[ModelSample], value: Callable[[ModelSample], float]
) -> list[float]:
    """Return the sum over all models, second by second."""
    sums = dict.fromkeys(instants(samples), 0.0)
    for sample in samples:
        sums[sample.at_ms] += value(sample)
    return list(sums.values())
