"""Simulated: a device that takes a profile's time and computes nothing; its results are NaN."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from statistics import NormalDist
from typing import cast

import numpy as np
import torch

from engine.effects import ConvertWeights, EvictWeights, LoadWeights, MoveWeights, RunBatch
from engine.errors import DeviceError
from engine.ports import ModelImages, Payload
from engine.profile import Latency, Profile
from engine.spec import DeviceSpec, LaneKey
from engine.units import NS_PER_S, counter_uniform

_INVERSE_NORMAL = NormalDist().inv_cdf
_LOWEST = 2.0**-54  # a uniform number of 0 has no logarithm


class SimulatedDevice:
    """Wait as long as the profile of a model says, in real time.

    So a pool of many cards can be driven by the real engine on a machine
    that has none. An output is `float32 (items, 1)` of NaN: nobody can take
    it for an answer. Everything it does is as long as its description says,
    and that description names its source.
    """

    def __init__(self, spec: DeviceSpec, images: ModelImages) -> None:
        """Hold nothing; profiles are looked up when a batch comes."""
        assert spec.kind == "simulated", "a real device computes"
        self._spec = spec
        self._images = images
        self._loaded: dict[str, int] = {}
        self._closing = threading.Event()

    def __repr__(self) -> str:
        """Show what it pretends to hold."""
        return f"SimulatedDevice({self._spec.name}, {sorted(self._loaded)})"

    @property
    def spec(self) -> DeviceSpec:
        """Return the description that the core knows."""
        return self._spec

    def start_worker(self) -> None:
        """Need no preparation."""

    def load(self, effect: LoadWeights) -> None:
        """Take the time of a copy from host memory."""
        self._wait(effect.size_bytes * NS_PER_S / self._spec.load_bytes_per_s)
        self._loaded[effect.model] = effect.size_bytes

    def evict(self, effect: EvictWeights) -> None:
        """Drop a model's weights; that takes no time."""
        del self._loaded[effect.model]

    def move(self, effect: MoveWeights) -> None:
        """Take the time of a copy inside the device."""
        assert effect.model in self._loaded, "only what was loaded can move"
        self._wait(effect.size_bytes * NS_PER_S / self._spec.move_bytes_per_s)

    def convert(self, effect: ConvertWeights) -> None:
        """Take the time of writing the weights anew."""
        self._wait(effect.new_size_bytes * NS_PER_S / self._spec.move_bytes_per_s)
        self._loaded[effect.model] = effect.new_size_bytes

    def run(self, batch: RunBatch, inputs: Sequence[Payload]) -> Sequence[Payload]:
        """Take the time of the batch and return NaN, of the kind of each input."""
        assert batch.lane.model in self._loaded, "a batch runs on loaded weights"
        latency = self._profile(batch.lane).latency
        self._wait(_drawn(latency, batch.items, batch_id=batch.batch_id))
        return [_nothing(part) for part in inputs]

    def peak_bytes(self) -> int:
        """Measure nothing."""
        return 0

    def telemetry(self) -> None:
        """Return nothing: there is no card."""

    def truth_bytes(self) -> int:
        """Return the bytes of the weights that it pretends to hold."""
        return sum(list(self._loaded.values()))

    def close(self) -> None:
        """End all waits: who waits gets an error."""
        self._closing.set()
        self._loaded.clear()

    def _profile(self, lane: LaneKey) -> Profile:
        profiles = [
            profile
            for profile in self._images[lane.model].profiles
            if profile.key.device_kind == "simulated"
        ]
        for shape in (lane.shape, ()):
            for profile in profiles:
                if profile.key.shape == shape:
                    return profile
        raise DeviceError(f"{self._spec.name}: {lane} has no profile to simulate")

    def _wait(self, duration_ns: float) -> None:
        if self._closing.wait(duration_ns / NS_PER_S):
            raise DeviceError(f"{self._spec.name}: closed while it worked")


def _drawn(latency: Latency, items: int, *, batch_id: int) -> float:
    """Return the nanoseconds of a batch; its chance depends on its id alone."""
    expected_ns = latency.at(items)
    if latency.spread == "none":
        return expected_ns
    uniform = max(_LOWEST, counter_uniform(batch_id))
    if latency.spread == "exponential":
        return expected_ns * -math.log(uniform)
    return expected_ns * max(0.0, 1 + latency.sigma * _INVERSE_NORMAL(uniform))


def _nothing(part: Payload) -> Payload:
    nothing = np.full((len(part), 1), np.nan, np.float32)
    return cast(
        Payload, torch.from_numpy(nothing) if isinstance(part, torch.Tensor) else nothing
    )
