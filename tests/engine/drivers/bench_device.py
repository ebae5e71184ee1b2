"""A device under the test's control: it implements the port and does what it is told."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from engine.drivers.clock import MonotonicClock
from engine.effects import ConvertWeights, EvictWeights, LoadWeights, MoveWeights, RunBatch
from engine.engine import Engine
from engine.errors import InputError
from engine.policy import Policy
from engine.ports import HostCopy, Payload, Recorder
from engine.profile import Latency, Profile, ProfileKey
from engine.rules import PRECISIONS
from engine.spec import Bucket, DeviceSpec, ModelSpec, Sample
from engine.units import MIB


class TestBench:
    """Note what a device was told, and check that its memory could have done it.

    A model may run only while its weights lie where the core put them, and no
    two models may lie on the same bytes: that is the order of effects, seen
    from the memory.
    """

    __test__ = False

    def __init__(self, name: str = "bench:0", *, pool_mib: int = 64) -> None:
        """Have a pool of that size, budgeted leases, and nothing in it."""
        self.spec = DeviceSpec(name, "cpu", (pool_mib + 2) * MIB, 0, False, 1e9, 1e9)
        self.ranges: dict[str, tuple[int, int]] = {}
        self.wrong: list[str] = []
        self.before: Callable[[], None] = lambda: None
        self.answer: Callable[[np.ndarray], np.ndarray] = lambda x: x * 2
        self.gate = threading.Event()
        self.gate.set()
        self.runs = 0
        self.changes = 0
        self.peak = 0
        self._books = threading.Lock()

    def load(self, effect: LoadWeights) -> None:
        """Lay weights down; nobody else may lie there."""
        self.before()
        end = effect.offset + effect.size_bytes
        with self._books:
            for model, (start, stop) in self.ranges.items():
                if effect.offset < stop and start < end:
                    self.wrong.append(f"{effect.model} was loaded onto {model}")
            self.ranges[effect.model] = effect.offset, end

    def evict(self, effect: EvictWeights) -> None:
        """Take weights away; they must be there."""
        self.before()
        with self._books:
            if self.ranges.pop(effect.model, None) is None:
                self.wrong.append(f"{effect.model} was evicted without being there")

    def run(self, batch: RunBatch, inputs: Sequence[Payload]) -> Sequence[Payload]:
        """Answer, if the model's weights are there for the whole batch."""
        self.before()
        self.gate.wait()
        self.runs += 1
        for _ in range(2):
            with self._books:
                if batch.lane.model not in self.ranges:
                    self.wrong.append(f"{batch.lane.model} ran without weights")
            self.before()
        return [self.answer(np.asarray(x)) for x in inputs]

    def move(self, effect: MoveWeights) -> None:
        """Lay weights elsewhere; nobody else may lie there."""
        start, stop = effect.new_offset, effect.new_offset + effect.size_bytes
        self._lay(effect.model, effect.offset, span=(start, stop))

    def convert(self, effect: ConvertWeights) -> None:
        """Let weights become smaller or larger; nobody else may lie there."""
        start, stop = effect.new_offset, effect.new_offset + effect.new_size_bytes
        self._lay(effect.model, effect.offset, span=(start, stop))

    def _lay(self, name: str, offset: int, *, span: tuple[int, int]) -> None:
        self.before()
        with self._books:
            self.changes += 1
            if self.ranges[name][0] != offset:
                self.wrong.append(f"{name} lies elsewhere than the core says")
            for other, (start, stop) in self.ranges.items():
                if other != name and span[0] < stop and start < span[1]:
                    self.wrong.append(f"{name} was laid onto {other}")
            self.ranges[name] = span

    def peak_bytes(self) -> int:
        """Return what the test says that batches need; 0: not measured."""
        return self.peak

    def telemetry(self) -> None:
        return None

    def truth_bytes(self) -> int:
        """Return the bytes of all weights that lie here."""
        return sum(stop - start for start, stop in self.ranges.values())

    def start_worker(self) -> None:
        """Need no preparation."""

    def close(self) -> None:
        """Hold nothing."""


@dataclass(frozen=True, slots=True)
class Image:
    """Be a model that exists in name and size only."""

    spec: ModelSpec
    profiles: tuple[Profile, ...]
    size_bytes: int
    build_ns: int = 1


class BenchImages:
    """Know models of `weight_mib` each, 1 KiB of workspace per item.

    Where they are varied, they differ in size and may be held at a half and a quarter.
    """

    def __init__(self, weight_mib: int = 10, *, are_varied: bool = False) -> None:
        """Start empty."""
        self._weight_bytes = weight_mib * MIB
        self._are_varied = are_varied
        self._images: dict[str, Image] = {}

    def add(self, spec: ModelSpec, kinds: Sequence[str]) -> Image:
        """Give the model a profile, unless it says that something is missing."""
        if spec.missing:
            raise InputError(f"{spec.name}: {spec.missing}")
        size, precisions = self._weight_bytes, PRECISIONS[:1]
        if self._are_varied:
            size, precisions = (4 + 3 * (len(self._images) % 3)) * MIB, PRECISIONS
        profiles = tuple(
            Profile(
                ProfileKey(spec.name, kind, precision),
                size >> index,
                0,
                1024,
                Latency(0, 1000, 1000),
            )
            for kind in kinds
            for index, precision in enumerate(precisions)
        )
        self._images[spec.name] = Image(spec, profiles, size)
        return self._images[spec.name]

    def set_host_budget(self, budget_bytes: int | None) -> Sequence[HostCopy]:
        """Have nothing to write or read."""
        self.host_budget = budget_bytes
        return ()

    def lower(self, model: str, precision: str) -> Image:
        """Return the model with its profiles at that precision, which it has from the start."""
        image = self._images[model]
        kept = tuple(p for p in image.profiles if p.key.precision == precision)
        return Image(image.spec, kept, image.size_bytes)

    def __getitem__(self, model: str) -> Image:
        """Return an image that was added."""
        return self._images[model]


def model(name: str, *, shape: tuple[int, ...] = (2,)) -> ModelSpec:
    """Describe a model that takes float32 items of that shape."""

    def inputs(seed: int) -> Sample:
        return Sample(np.full((1, *shape), seed, np.float32))

    return ModelSpec(name, object, (Bucket(shape),), inputs)


def open_engine(
    benches: Sequence[TestBench],
    *,
    policy: Policy | None = None,
    models: Sequence[str] = ("a",),
    recorder: Recorder | None = None,
    are_varied: bool = False,
) -> Engine:
    """Return an engine over these devices with these models."""
    engine = Engine(
        benches,
        BenchImages(are_varied=are_varied),
        policy=policy or Policy(),
        clock=MonotonicClock(),
        recorder=recorder,
    )
    for name in models:
        engine.add_model(model(name))
    return engine


def spin(ns: int) -> None:
    """Keep the thread busy for so long, so that others get ahead of it."""
    end = time.perf_counter_ns() + ns
    while time.perf_counter_ns() < end:
        pass
