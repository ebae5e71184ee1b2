"""Pooling: how much memory one pool needs for what a static partition gives each its own.

Pages come in bursts; each is detected, its lines are turned and read, as the
OCR pipeline does it. Sizes and latencies are those of the real models, planned
and probed on this machine; the device itself is simulated, on virtual time,
under the same scheduler as the live engine.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

import torch

from benchmarks.measure import report
from engine.devices.process import tune_memory
from engine.devices.weights import Images
from engine.drivers.simulated_costs import Costs, Work
from engine.effects import (
    CallWorker,
    Effect,
    EvictWeights,
    LoadWeights,
    MoveWeights,
    RejectRequests,
    ResolveRequests,
    RunBatch,
    WakeAt,
)
from engine.events import (
    BatchFailed,
    DeviceAdded,
    Event,
    LoadFailed,
    ProfileUpdated,
    Submitted,
    TimePassed,
    WorkerReady,
)
from engine.policy import Policy
from engine.profile import Profile
from engine.request import Request
from engine.scheduler.core import EngineCore
from engine.spec import DeviceSpec, LaneKey
from engine.units import GIB, MIB, NS_PER_S
from sample_models import MODELS

STAGES = ("text_detector", "line_direction", "text_recognizer")
WATERMARKS = {
    "text_detector": {"low": 1, "high": 4, "timeout_ms": 20.0},
    "line_direction": {"low": 4, "high": 16, "timeout_ms": 20.0},
    "text_recognizer": {"low": 4, "high": 16, "timeout_ms": 20.0},
}
"""The same on both sides. `pooled_bytes` lets batches be smaller where memory is short;
`same_batches_bytes` is the least pool in which every model's largest batch ran as before."""
BURSTS, BURST_EVERY_S, PAGES, LINES = 30, 20, (4, 10), (8, 30)
WITHIN = 1.10
RESOLUTION_BYTES = 4 * MIB
SEED = 1


@dataclass(slots=True)
class Page:
    """Hold one page on its way: which stage it is at and what that stage waits for."""

    arrival_ns: int
    lanes: tuple[tuple[LaneKey, int], ...]
    stage: int = 0
    waiting: int = 0


@dataclass(slots=True)
class Served:
    """Hold what one pool did with the load.

    Attributes:
        peaks: Largest lease of a batch that ran, by model.
        oom: Batches and loads that failed, and requests that were turned away.
    """

    latencies_ns: list[int] = field(default_factory=list)
    peaks: dict[str, int] = field(default_factory=dict)
    oom: int = 0
    loads: int = 0

    def p99_ms(self) -> float:
        """Return the latency that 99 of 100 pages stay below; infinite if none came through."""
        if not self.latencies_ns:
            return float("inf")
        ordered = sorted(self.latencies_ns)
        return ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)] / 1e6


def pages(profiles: Sequence[Profile]) -> list[Page]:
    """Return the fixed load: bursts of pages, each with lines of several widths."""
    rng = random.Random(SEED)
    lanes = {p.key.model: LaneKey(p.key.model, p.key.shape, "float32") for p in profiles}
    widths = [p.key.shape for p in profiles if p.key.model == STAGES[2]]
    found = []
    for burst in range(BURSTS):
        for _ in range(rng.randint(*PAGES)):
            at_ns = burst * BURST_EVERY_S * NS_PER_S + rng.randrange(NS_PER_S)
            lines = rng.randint(*LINES)
            read = sorted(rng.choices(widths, weights=range(len(widths), 0, -1), k=lines))
            by_width = tuple(
                (LaneKey(STAGES[2], width, "float32"), read.count(width))
                for width in dict.fromkeys(read)
            )
            first = (lanes[STAGES[0]], 1), (lanes[STAGES[1]], lines)
            found.append(Page(at_ns, (*first, *by_width)))
    return sorted(found, key=lambda page: page.arrival_ns)


class Bench:
    """Drive the scheduler on virtual time with pages in place of single requests."""

    def __init__(self, profiles: Sequence[Profile], pool_bytes: int) -> None:
        """Make one device whose pool has that size, all of it for weights and leases."""
        policy = Policy().replace(models=WATERMARKS)
        self._core = EngineCore(policy.compile())
        spec = DeviceSpec("bench:0", "cpu", pool_bytes + 2 * MIB, 0, False, 4e9, 8e9)
        self._costs = Costs([spec], profiles, seed=SEED)
        self._heap: list[tuple[int, int, Event | Page]] = []
        self._pushed = 0
        self._of: dict[int, Page] = {}
        self._wake_ns: int | None = None
        self.served = Served()
        self._now_ns = 0
        for profile in profiles:
            self._tell(ProfileUpdated(profile))
        self._tell(DeviceAdded(spec))

    def run(self, load: Sequence[Page]) -> Served:
        """Let all pages come and go."""
        for page in load:
            self._push(page.arrival_ns, Page(page.arrival_ns, page.lanes))
        while self._heap or self._wake_ns is not None:
            due = self._heap[0][0] if self._heap else None
            if self._wake_ns is not None and (due is None or self._wake_ns < due):
                self._now_ns, self._wake_ns = max(self._now_ns, self._wake_ns), None
                self._tell(TimePassed())
                continue
            self._now_ns, _, entry = heappop(self._heap)
            if isinstance(entry, Page):
                self._next_stage(entry)
            else:
                self._tell(entry)
        return self.served

    def _next_stage(self, page: Page) -> None:
        """Submit what the page's next stage asks for; after the last one it is read."""
        chosen = [(lane, n) for lane, n in page.lanes if lane.model == STAGES[page.stage]]
        page.stage += 1
        page.waiting = len(chosen)
        for lane, items in chosen:
            request_id = len(self._of)
            self._of[request_id] = page
            request = Request(request_id, lane, items, 4 * items, 5, 0, internal=True)
            self._tell(Submitted(request))

    def _tell(self, event: Event) -> None:
        self.served.oom += isinstance(event, BatchFailed | LoadFailed)
        for effect in self._core.handle(event, self._now_ns):
            self._carry_out(effect)

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case RunBatch():
                peaks, model = self.served.peaks, effect.lane.model
                peaks[model] = max(peaks.get(model, 0), effect.lease_bytes)
                self._push(*self._costs.batch(effect, self._now_ns))
            case CallWorker():
                self._push(self._now_ns, WorkerReady(effect.device))
            case LoadWeights() | EvictWeights() | MoveWeights():
                self.served.loads += isinstance(effect, LoadWeights)
                self._push(*self._cost(effect))
            case ResolveRequests():
                for request_id in effect.request_ids:
                    self._resolved(self._of[request_id])
            case RejectRequests():
                self.served.oom += len(effect.request_ids)
            case WakeAt():
                self._wake_ns = effect.at_ns
            case _:
                pass  # decisions and snapshots are nobody's here

    def _cost(self, effect: Work) -> tuple[int, Event]:
        return self._costs.other(effect, self._now_ns)

    def _resolved(self, page: Page) -> None:
        page.waiting -= 1
        if page.waiting:
            return
        if page.stage < len(STAGES):
            self._push(self._now_ns, page)
        else:
            self.served.latencies_ns.append(self._now_ns - page.arrival_ns)

    def _push(self, at_ns: int, entry: Event | Page) -> None:
        self._pushed += 1
        heappush(self._heap, (at_ns, self._pushed, entry))


def least_pool(
    profiles: Sequence[Profile], load: Sequence[Page], *, is_good: Callable[[Served], bool]
) -> tuple[int, Served]:
    """Return the least pool that serves all pages and is good enough, by bisection."""
    low, high = 0, 4 * GIB
    best = Bench(profiles, high).run(load)
    while high - low > RESOLUTION_BYTES:
        middle = (low + high) // 2
        served = Bench(profiles, middle).run(load)
        is_enough = len(served.latencies_ns) == len(load) and not served.oom
        if is_enough and is_good(served):
            high, best = middle, served
        else:
            low = middle
    return high, best


def main() -> None:
    """Compare the sum of the peaks with the least pool and print both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", metavar="FILE", help="write one JSON object; - is stdout")
    target = parser.parse_args().json
    tune_memory()
    torch.set_num_threads(1)
    images = Images()
    specs = [spec for spec in MODELS if spec.name in STAGES]
    profiles = [p for spec in specs for p in images.add(spec, ["cpu"]).profiles]
    load = pages(profiles)
    apart = Bench(profiles, 4 * GIB).run(load)
    weights = {p.key.model: p.weight_bytes for p in profiles}
    static = sum(weights[model] + peak for model, peak in apart.peaks.items())
    limit_ms = apart.p99_ms() * WITHIN
    pooled, served = least_pool(profiles, load, is_good=lambda s: s.p99_ms() <= limit_ms)
    same, _ = least_pool(
        profiles,
        load,
        is_good=lambda s: s.p99_ms() <= limit_ms and s.peaks == apart.peaks,
    )
    report(
        {
            "static_bytes": static,
            "pooled_bytes": pooled,
            "ratio": round(pooled / static, 3),
            "same_batches_bytes": same,
            "same_batches_ratio": round(same / static, 3),
            "oom": served.oom + apart.oom,
            "pages": len(load),
            "peaks_mib": {m: round(peak / MIB, 1) for m, peak in apart.peaks.items()},
            "weights_mib": {m: round(size / MIB, 1) for m, size in weights.items()},
            "p99_ms": {"static": round(apart.p99_ms()), "pooled": round(served.p99_ms())},
            "loads": {"static": apart.loads, "pooled": served.loads},
            "device": "simulated, with the sizes and latencies of the real models on this CPU",
        },
        target,
    )


if __name__ == "__main__":
    main()
