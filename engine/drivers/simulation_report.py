"""Report: what a simulation is measured by, and its figures as one JSON object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from engine.drivers.simulated_costs import Work
from engine.effects import EvictWeights, LoadWeights, MoveWeights, RunBatch
from engine.load.scenario import Scenario
from engine.memory.fragmentation import unusable
from engine.memory.state import DeviceState
from engine.snapshot import Snapshot
from engine.units import NS_PER_MS, NS_PER_S, ms_to_ns

SAMPLES = 200
"""Instants at which memory is looked at: enough for means to a few parts in a thousand."""
USEFUL_NS = 10 * NS_PER_S
"""A model that ran so short a time ago counts as useful."""


class Ended(IntEnum):
    """Stand in for the instant of a request's result when there is none."""

    UNFINISHED = -1
    REFUSED = -2
    EXPIRED = -3
    FAILED = -4
    CANCELLED = -5


class Measures:
    """Count work that ends after the warm-up, and look at memory at even intervals.

    Every sample stands for the interval around it, so that its mean is a
    time-average.
    """

    def __init__(self, scenario: Scenario) -> None:
        """Start at 0."""
        self._warmup_ns, self._end_ns = scenario.warmup_ns, scenario.duration_ns
        self._period_ns = max(1, (self._end_ns - self._warmup_ns) // SAMPLES)
        self._largest_bytes = max(profile.weight_bytes for profile in scenario.profiles)
        self._last_ran_ns: dict[str, int] = {}
        self._levels = np.zeros(4)
        self._sample_count = 0
        self.batches = self.batch_items = 0
        self.loads = self.loaded_bytes = self.evictions = self.moved_bytes = 0

    @property
    def first_sample_ns(self) -> int:
        """Return the instant of the first look."""
        return self._warmup_ns + self._period_ns // 2

    def batch(self, effect: RunBatch, end_ns: int) -> None:
        """Count a batch that ends at that instant."""
        self._last_ran_ns[effect.lane.model] = end_ns
        if self._warmup_ns <= end_ns <= self._end_ns:
            self.batches += 1
            self.batch_items += effect.items

    def work(self, effect: Work, end_ns: int) -> None:
        """Count anything else that ends at that instant."""
        if not self._warmup_ns <= end_ns <= self._end_ns:
            return
        if isinstance(effect, LoadWeights):
            self.loads += 1
            self.loaded_bytes += effect.size_bytes
        elif isinstance(effect, EvictWeights):
            self.evictions += 1
        elif isinstance(effect, MoveWeights):
            self.moved_bytes += effect.size_bytes

    def sample(self, snapshot: Snapshot) -> int | None:
        """Look at memory; return the instant of the next look, None after the last."""
        rows = [self._look(device, snapshot.at_ns) for device in snapshot.memory.devices]
        self._levels += np.mean(rows, axis=0)
        self._sample_count += 1
        next_ns = snapshot.at_ns + self._period_ns
        return next_ns if self._sample_count < SAMPLES else None

    def levels(self) -> dict[str, float]:
        """Return the time-averages, each the mean of all devices."""
        names = (
            "memory_utilisation",
            "useful_occupancy",
            "external_fragmentation",
            "unusable_largest",
        )
        means = self._levels / max(1, self._sample_count)
        return dict(zip(names, means.tolist(), strict=True))

    def rates(self) -> dict[str, float]:
        """Return what happened to weights, per second."""
        seconds = (self._end_ns - self._warmup_ns) / NS_PER_S
        return {
            "loads_per_s": self.loads / seconds,
            "loaded_bytes_per_s": self.loaded_bytes / seconds,
            "evictions_per_s": self.evictions / seconds,
            "moved_bytes_per_s": self.moved_bytes / seconds,
        }

    def _look(self, device: DeviceState, now_ns: int) -> tuple[float, float, float, float]:
        since_ns, last_ran_ns = now_ns - USEFUL_NS, self._last_ran_ns
        useful_bytes = sum(
            resident.size_bytes
            for resident in device.residents
            if last_ran_ns.get(resident.model, -1) >= max(0, since_ns)
        )
        return (
            device.utilisation,
            useful_bytes / device.pool_bytes,
            device.external_fragmentation,
            unusable(device.holes, self._largest_bytes),
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """Hold what became of every request, and what was counted beside.

    Attributes:
        arrivals_ns: int64 (requests,): intended arrivals.
        models: int64 (requests,): index of the model in the scenario.
        ended_ns: When each result was there, or a member of `Ended`.
        events: How many the core handled.
    """

    scenario: Scenario
    arrivals_ns: NDArray[np.int64]
    models: NDArray[np.int64]
    ended_ns: Sequence[int]
    measures: Measures
    events: int
    decision_log_sha256: str
    wall_s: float

    def counts(self) -> dict[str, int]:
        """Return how many requests of the whole run ended in which way; they add up."""
        ended = np.asarray(self.ended_ns, np.int64)
        counts = {"submitted": len(ended), "completed": int((ended >= 0).sum())}
        for way in Ended:
            counts[way.name.lower()] = int((ended == way).sum())
        return counts

    def latencies_ns(self) -> NDArray[np.int64]:
        """Return int64 (completed,): latencies in order of arrival, warm-up left out."""
        ended = np.asarray(self.ended_ns, np.int64)
        counted = (self.arrivals_ns >= self.scenario.warmup_ns) & (ended >= 0)
        return ended[counted] - self.arrivals_ns[counted]

    def report(self) -> dict[str, object]:
        """Return the figures of the requests that arrived after the warm-up.

        A request that is unfinished at the end counts as missed when it is
        older than its SLO; a younger one could still make it and counts for
        neither side.
        """
        measures = self.measures
        return {
            **self._requests(),
            "mean_batch_items": measures.batch_items / max(1, measures.batches),
            **measures.levels(),
            **measures.rates(),
            "wall_s": self.wall_s,
            "events": self.events,
            "decision_log_sha256": self.decision_log_sha256,
        }

    def _requests(self) -> Mapping[str, object]:
        scenario = self.scenario
        is_counted = self.arrivals_ns >= scenario.warmup_ns
        arrivals, models = self.arrivals_ns[is_counted], self.models[is_counted]
        ended = np.asarray(self.ended_ns, np.int64)[is_counted]
        names = [profile.key.model for profile in scenario.profiles]
        slo_ns = np.array([ms_to_ns(scenario.policy.model(n).slo_ms) for n in names])[models]
        is_good = (ended >= 0) & (ended - arrivals <= slo_ns)
        age_ns = scenario.duration_ns - arrivals
        is_open = (ended == Ended.UNFINISHED) & (age_ns <= slo_ns)
        good, judged = int(is_good.sum()), len(ended) - int(is_open.sum())
        seconds = (scenario.duration_ns - scenario.warmup_ns) / NS_PER_S
        return {
            "offered_hz": len(ended) / seconds,
            "completed_hz": int((ended >= 0).sum()) / seconds,
            "goodput_hz": good / seconds,
            "slo_attainment": good / judged if judged else 1.0,
            "latency_ms": _percentiles_ms(self.latencies_ns()),
            "expired": int((ended == Ended.EXPIRED).sum()),
            "refused": int((ended == Ended.REFUSED).sum()),
        }


def _percentiles_ms(latencies_ns: NDArray[np.int64]) -> dict[str, float | None]:
    shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "max": 1.0}
    if not len(latencies_ns):
        return dict.fromkeys(shares)
    values = np.quantile(latencies_ns, list(shares.values()), method="higher") / NS_PER_MS
    return dict(zip(shares, values.tolist(), strict=True))
