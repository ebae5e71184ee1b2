"""Costs: when on virtual time a device ends what the core ordered, and with which event."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

from engine.effects import ConvertWeights, EvictWeights, LoadWeights, MoveWeights, RunBatch
from engine.events import (
    BatchFinished,
    ConvertFinished,
    Event,
    EvictFinished,
    LoadFinished,
    MoveFinished,
)
from engine.profile import Latency, Profile
from engine.spec import DeviceSpec
from engine.units import NS_PER_S, counter_hash

Work = RunBatch | LoadWeights | EvictWeights | MoveWeights | ConvertWeights
_INVERSE_NORMAL = NormalDist().inv_cdf


def service_ns(latency: Latency, items: int, *, seed: int, batch_id: int) -> int:
    """Return the time of a batch; its chance is keyed by its id, so that policies share it."""
    expected = latency.at(items)
    if latency.spread == "none":
        return expected
    uniform = ((counter_hash(seed, batch_id) >> 11) + 0.5) / (1 << 53)
    if latency.spread == "normal":
        factor = 1 + latency.sigma * _INVERSE_NORMAL(uniform)
    else:
        factor = -math.log(uniform)
    return max(1, round(expected * factor))


class Costs:
    """Keep each device's two lines of work, which overlap each other.

    Its loader does loads one after another; its worker batches, moves and
    conversions. An eviction only drops weights and takes no time.
    """

    __slots__ = ("_devices", "_latency", "_loader_ns", "_seed", "_worker_ns")

    def __init__(
        self, devices: Sequence[DeviceSpec], profiles: Sequence[Profile], *, seed: int
    ) -> None:
        """Start with idle devices."""
        self._devices = {device.name: device for device in devices}
        self._latency = {(p.key.model, p.key.shape): p.latency for p in profiles}
        self._loader_ns = dict.fromkeys(self._devices, 0)
        self._worker_ns = dict.fromkeys(self._devices, 0)
        self._seed = seed

    def batch(self, effect: RunBatch, now_ns: int) -> tuple[int, BatchFinished]:
        """Return when a batch ends, and the event of it."""
        lane = effect.lane
        latency = self._latency.get((lane.model, lane.shape))
        if latency is None:
            latency = self._latency[lane.model, ()]
        took_ns = service_ns(latency, effect.items, seed=self._seed, batch_id=effect.batch_id)
        at_ns = max(now_ns, self._worker_ns[effect.device]) + took_ns
        self._worker_ns[effect.device] = at_ns
        return at_ns, BatchFinished(effect.batch_id, took_ns)

    def other(self, effect: Work, now_ns: int) -> tuple[int, Event]:
        """Return when anything but a batch ends, and the event of it."""
        device = self._devices[effect.device]
        match effect:
            case LoadWeights(load_id=load_id, size_bytes=size_bytes):
                took_ns = round(size_bytes * NS_PER_S / device.load_bytes_per_s)
                at_ns = max(now_ns, self._loader_ns[device.name]) + took_ns
                self._loader_ns[device.name] = at_ns
                return at_ns, LoadFinished(load_id, took_ns, size_bytes)
            case EvictWeights(eviction_id=eviction_id, size_bytes=size_bytes):
                return now_ns, EvictFinished(eviction_id, 0, size_bytes)
            case MoveWeights(move_id=move_id, size_bytes=size_bytes):
                at_ns, took_ns = self._moved(device, size_bytes, now_ns=now_ns)
                return at_ns, MoveFinished(move_id, took_ns, size_bytes)
            case ConvertWeights(convert_id=convert_id, new_size_bytes=size_bytes):
                at_ns, took_ns = self._moved(device, size_bytes, now_ns=now_ns)
                return at_ns, ConvertFinished(convert_id, took_ns, size_bytes)
            case RunBatch():
                return self.batch(effect, now_ns)

    def _moved(self, device: DeviceSpec, size_bytes: int, *, now_ns: int) -> tuple[int, int]:
        took_ns = round(size_bytes * NS_PER_S / device.move_bytes_per_s)
        at_ns = max(now_ns, self._worker_ns[device.name]) + took_ns
        self._worker_ns[device.name] = at_ns
        return at_ns, took_ns
