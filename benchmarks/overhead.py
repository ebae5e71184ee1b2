"""Overhead: what the engine itself costs per request, against a bare queue and worker."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.bare import BareLoop
from benchmarks.measure import Window, arguments, closed_loop, median, report, thread_loop
from engine.devices.process import tune_interpreter, tune_memory
from engine.drivers.clock import MonotonicClock
from engine.drivers.completion import AsyncResult
from engine.effects import ConvertWeights, EvictWeights, LoadWeights, MoveWeights, RunBatch
from engine.engine import Engine
from engine.policy import Policy
from engine.ports import HostCopy, Payload
from engine.profile import Latency, Profile, ProfileKey
from engine.spec import Bucket, DeviceSpec, ModelSpec, Sample
from engine.units import MIB

CLIENTS = 64
SHAPE = (16,)
MODELS = 8


class NoopDevice:
    """Return every input as its output: what is left to measure is the engine."""

    def __init__(self) -> None:
        """Have a small pool that all models fit into."""
        self.spec = DeviceSpec("noop:0", "cpu", 64 * MIB, 4 * MIB, False, 1e10, 1e10)

    def run(self, batch: RunBatch, inputs: Sequence[Payload]) -> Sequence[Payload]:
        """Give the inputs back."""
        assert len(batch.parts) == len(inputs), "one input per part"
        return inputs

    def load(self, effect: LoadWeights) -> None:
        """Have nothing to load."""

    def evict(self, effect: EvictWeights) -> None:
        """Have nothing to drop."""

    def move(self, effect: MoveWeights) -> None:
        """Have nothing to move."""

    def convert(self, effect: ConvertWeights) -> None:
        """Have nothing to convert."""

    def peak_bytes(self) -> int:
        """Need no workspace."""
        return 0

    def telemetry(self) -> None:
        """Return nothing: there is no card."""

    def truth_bytes(self) -> int:
        """Hold nothing."""
        return 0

    def start_worker(self) -> None:
        """Need no preparation."""

    def close(self) -> None:
        """Hold nothing."""


@dataclass(frozen=True, slots=True)
class NoopImage:
    """Be the image of a model without weights."""

    spec: ModelSpec
    profiles: tuple[Profile, ...]
    size_bytes: int = 512
    build_ns: int = 0


class NoopImages:
    """Know every model without building anything."""

    def __init__(self) -> None:
        """Start empty."""
        self._images: dict[str, NoopImage] = {}

    def add(self, spec: ModelSpec, kinds: Sequence[str]) -> NoopImage:
        """Give the model a profile of 10 µs per batch and 128 bytes per item."""
        latency = Latency(10_000, 0, 0)
        profiles = tuple(
            Profile(ProfileKey(spec.name, kind), 512, 0, 128, latency, source="noop")
            for kind in kinds
        )
        self._images[spec.name] = NoopImage(spec, profiles)
        return self._images[spec.name]

    def lower(self, model: str, precision: str) -> NoopImage:
        """Have one precision only; nobody asks for another."""
        assert precision == "fp32", f"{model} has no weights to reduce"
        return self._images[model]

    def set_host_budget(self, budget_bytes: int | None) -> Sequence[HostCopy]:
        """Have nothing in host memory."""
        assert budget_bytes is None, "there is nothing to bound"
        return ()

    def __getitem__(self, model: str) -> NoopImage:
        """Return an image that was added."""
        return self._images[model]


def make_engine(models: int) -> Engine:
    """Return an engine with that many no-op models, everything on."""
    policy = Policy().replace(default={"low": 1, "high": CLIENTS, "timeout_ms": 5.0})
    engine = Engine([NoopDevice()], NoopImages(), policy=policy, clock=MonotonicClock())
    for index in range(models):
        spec = ModelSpec(f"noop{index}", object, (Bucket(SHAPE),), Sample)
        engine.add_model(spec)
    return engine


def run_engine(seconds: float, *, models: int = 1) -> Window:
    """Measure the engine with asyncio clients, spread evenly over the models."""
    engine = make_engine(models)
    x = np.zeros((1, *SHAPE), np.float32)
    names = [f"noop{index}" for index in range(models)]
    turn = 0

    def one() -> AsyncResult:
        return engine.infer_async("noop0", x)

    def spread() -> AsyncResult:
        nonlocal turn
        turn += 1
        return engine.infer_async(names[turn % models], x)

    try:
        return closed_loop(one if models == 1 else spread, CLIENTS, seconds=seconds)
    finally:
        engine.close()


def run_threads(seconds: float) -> Window:
    """Measure the engine with a thread per client."""
    engine = make_engine(1)
    x = np.zeros((1, *SHAPE), np.float32)
    try:
        return thread_loop(lambda: engine.infer("noop0", x), CLIENTS, seconds=seconds)
    finally:
        engine.close()


def run_bare(seconds: float) -> Window:
    """Measure the bare loop."""
    bare = BareLoop(lambda values: values, high=CLIENTS)
    x = np.zeros((1, *SHAPE), np.float32)
    try:
        return closed_loop(lambda: bare.submit(x), CLIENTS, seconds=seconds)
    finally:
        bare.close()


def main() -> None:
    """Interleave bare and engine windows and report medians and the median of ratios."""
    options = arguments(__doc__ or "", rounds=5, seconds=2.0)
    tune_memory()
    tune_interpreter()
    run_bare(0.5)
    run_engine(0.5)
    bare: list[float] = []
    single: list[float] = []
    spread: list[float] = []
    threads: list[float] = []
    for number in range(options.rounds):
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
        bare.append(run_bare(options.seconds).per_s)
        single.append(run_engine(options.seconds).per_s)
        spread.append(run_engine(options.seconds, models=MODELS).per_s)
        threads.append(run_threads(options.seconds).per_s)
    report(
        {
            "benchmark": "overhead: no-op model, float32[16], 64 clients",
            "bare_req_per_s": round(median(bare)),
            "engine_req_per_s": round(median(single)),
            "ratio": round(median([a / b for a, b in zip(single, bare, strict=True)]), 3),
            "engine_8_models_req_per_s": round(median(spread)),
            "ratio_8_models": round(
                median([a / b for a, b in zip(spread, bare, strict=True)]), 3
            ),
            "engine_threads_req_per_s": round(median(threads)),
        },
        options.json,
    )


if __name__ == "__main__":
    main()
