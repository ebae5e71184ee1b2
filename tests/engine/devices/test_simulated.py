"""Simulated: it takes the time of its profile, and nobody can take its output for an answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from engine.devices.simulated import SimulatedDevice, _drawn
from engine.effects import LoadWeights, MoveWeights, RunBatch
from engine.errors import DeviceError
from engine.profile import Latency, Profile, ProfileKey
from engine.spec import DeviceSpec, ModelSpec
from tests.engine.devices.nets import GUARD, SAME, batch, evict

MIB = 1 << 20


@dataclass(frozen=True)
class Image:
    spec: ModelSpec
    profiles: tuple[Profile, ...]
    size_bytes: int = MIB
    build_ns: int = 0


class OneImage:
    """Know one model, with a profile by hand."""

    def __init__(self, latency: Latency) -> None:
        key = ProfileKey(SAME.name, "simulated")
        self._image = Image(SAME, (Profile(key, MIB, 0, 64, latency),))

    def add(self, spec: ModelSpec, kinds: Sequence[str]) -> Image:  # noqa: ARG002  # the port's
        return self._image

    def __getitem__(self, model: str) -> Image:
        return self._image


def make(latency: Latency, *, load_bytes_per_s: float = 1e12) -> SimulatedDevice:
    spec = DeviceSpec("sim:0", "simulated", 64 * MIB, 4 * MIB, True, load_bytes_per_s, 20 * MIB)
    return SimulatedDevice(spec, OneImage(latency))


def load() -> LoadWeights:
    return LoadWeights(1, "sim:0", SAME.name, "fp32", GUARD, MIB)


def run(device: SimulatedDevice, items: int = 1) -> float:
    start = time.perf_counter()
    device.run(batch(SAME, [items]), [np.zeros((items, 8), np.float32)])
    return time.perf_counter() - start


def test_batches_loads_and_moves_take_the_time_of_their_profile() -> None:
    device = make(Latency(0, 10_000_000, 5_000_000), load_bytes_per_s=50 * MIB)
    start = time.perf_counter()
    device.load(load())
    loaded = time.perf_counter()
    device.move(MoveWeights(1, "sim:0", SAME.name, GUARD, GUARD + MIB, MIB))
    moved = time.perf_counter()
    assert loaded - start >= 0.02
    assert moved - loaded >= 0.05
    assert run(device, items=4) >= 0.03


def test_outputs_are_nan_of_the_kind_of_the_input() -> None:
    device = make(Latency(0, 0, 0))
    device.load(load())
    parts = [np.zeros((2, 8), np.float32), torch.zeros(1, 8)]
    array, tensor = device.run(batch(SAME, [2, 1]), parts)
    assert isinstance(array, np.ndarray)
    assert isinstance(tensor, torch.Tensor)
    assert (array.shape, tuple(tensor.shape)) == ((2, 1), (1, 1))
    assert np.isnan(array).all()
    assert tensor.isnan().all()


def test_the_chance_of_a_batch_depends_on_its_number_alone() -> None:
    for spread in ("normal", "exponential"):
        latency = Latency(0, 1_000_000, 0, spread, 0.1)
        first = [_drawn(latency, 1, batch_id=number) for number in range(2000)]
        assert first == [_drawn(latency, 1, batch_id=number) for number in range(2000)]
        assert np.mean(first) == pytest.approx(1e6, rel=0.05)
        assert min(first) >= 0


def test_what_it_holds_is_what_was_loaded() -> None:
    device = make(Latency(0, 0, 0))
    device.load(load())
    assert device.truth_bytes() == MIB
    device.evict(evict(SAME, MIB))
    assert device.truth_bytes() == 0


def test_closing_ends_a_wait_with_an_error() -> None:
    device = make(Latency(0, 60_000_000_000, 0))
    device.load(load())
    errors: list[DeviceError] = []

    def work() -> None:
        try:
            device.run(_long(), [np.zeros((1, 8), np.float32)])
        except DeviceError as error:
            errors.append(error)

    worker = threading.Thread(target=work)
    worker.start()
    device.close()
    worker.join(10)
    assert not worker.is_alive()
    assert "closed" in str(errors[0])


def _long() -> RunBatch:
    return batch(SAME, [1])
