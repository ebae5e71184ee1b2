"""Frames: samples of seconds as columns that charts draw; reads nothing, knows no page."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from engine.metrics import LatencyHistogram
from storage.samples import DeviceSample, ModelSample

Columns = dict[str, list[float | None]]
Packed = tuple[bytes, ...]
SMOOTH_MS = 5000
"""Percentiles are of so long a while: of the few results of one second they say little."""
MOST_COLUMNS = 8


def local_ms(at_ms: int) -> int:
    """Return an instant shifted so that a chart's axis shows the machine's local time."""
    return at_ms + time.localtime(at_ms / 1000).tm_gmtoff * 1000


def instants(samples: Sequence[DeviceSample] | Sequence[ModelSample]) -> list[int]:
    """Return the seconds that the samples are from, ascending, in epoch milliseconds."""
    return sorted({sample.at_ms for sample in samples})


def merged(packed: Packed) -> LatencyHistogram:
    """Return packed histograms as one."""
    whole = LatencyHistogram()
    for one in packed:
        whole.merge(LatencyHistogram.from_bytes(one))
    return whole


@lru_cache(maxsize=8192)
def percentiles_ms(packed: Packed) -> tuple[float, float, float] | None:
    """Return p50, p95 and p99 of merged histograms; None when nothing was counted.

    Remembered by content: each second is computed once, however many tabs look.
    """
    whole = merged(packed)
    if not whole.count:
        return None
    p50, p95, p99 = (round(whole.percentile_ns(share) / 1e6, 2) for share in (0.5, 0.95, 0.99))
    return p50, p95, p99


@lru_cache(maxsize=8192)
def mean_ms(packed: Packed) -> float | None:
    """Return the mean of merged histograms; None when nothing was counted."""
    whole = merged(packed)
    return round(whole.mean_ns / 1e6, 3) if whole.count else None


def rolling(
    samples: Sequence[ModelSample], histogram: Callable[[ModelSample], bytes]
) -> list[Packed]:
    """Return for every second the histograms of the five seconds that end there."""
    grouped: dict[int, list[bytes]] = {at_ms: [] for at_ms in instants(samples)}
    for sample in samples:
        if sample.completed or sample.batches:
            grouped[sample.at_ms].append(histogram(sample))
    window: deque[tuple[int, list[bytes]]] = deque()
    found: list[Packed] = []
    for at_ms, packed in grouped.items():
        window.append((at_ms, packed))
        while window[0][0] <= at_ms - SMOOTH_MS:
            window.popleft()
        found.append(tuple(one for _, several in window for one in several))
    return found


def latency(samples: Sequence[ModelSample]) -> Columns:
    """Return p50, p95 and p99 in milliseconds over all models and the last five seconds."""
    rows = [percentiles_ms(packed) for packed in rolling(samples, lambda s: s.latency)]
    return {
        name: [None if row is None else row[index] for row in rows]
        for index, name in enumerate(("p50", "p95", "p99"))
    }


def wait_and_service(samples: Sequence[ModelSample]) -> Columns:
    """Return the mean wait and the mean service time in milliseconds, as in `latency`."""
    return {
        "wait": [mean_ms(packed) for packed in rolling(samples, lambda s: s.queueing)],
        "service": [mean_ms(packed) for packed in rolling(samples, lambda s: s.service)],
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
) -> Columns:
    """Return one column per device, None where it has no sample; in the order of names."""
    at = {at_ms: index for index, at_ms in enumerate(instants(samples))}
    columns: Columns = {}
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


def per_second(values: Sequence[float], at_ms: Sequence[int]) -> list[float]:
    """Return counts as rates: a sample stands for the time since the one before.

    Live samples are a second apart, those of a long run further.
    """
    gaps = [(b - a) / 1000 for a, b in pairwise(at_ms)]
    spans = [gaps[0] if gaps else 1.0, *gaps]
    return [round(v / (s or 1.0), 3) for v, s in zip(values, spans, strict=True)]


def smooth(values: Sequence[float], seconds: int = SMOOTH_MS // 1000) -> list[float]:
    """Return the means over the last so many values."""
    found: list[float] = []
    for index in range(len(values)):
        part = values[max(0, index + 1 - seconds) : index + 1]
        found.append(round(sum(part) / len(part), 3))
    return found


def busiest(columns: Mapping[str, list[float]]) -> dict[str, list[float]]:
    """Return the columns worth a colour: none that is all 0, the rest added up as `other`."""
    active = {name: column for name, column in columns.items() if any(column)}
    if len(active) <= MOST_COLUMNS:
        return active
    ranked = sorted(active, key=lambda name: (-sum(active[name]), name))
    kept = set(ranked[: MOST_COLUMNS - 1])
    rest = [active[name] for name in ranked[MOST_COLUMNS - 1 :]]
    found = {name: column for name, column in active.items() if name in kept}
    return found | {"other": [round(sum(row), 3) for row in zip(*rest, strict=True)]}
