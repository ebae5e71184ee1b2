"""What placement policies share: what is wanted, what was chosen, and the terms of a device."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

from engine.decisions import Number, Reason
from engine.memory.fragmentation import external
from engine.memory.state import DeviceState, MemoryState
from engine.rules import PlacementWeights


@dataclass(frozen=True, slots=True)
class Want:
    """Say what has to be placed: a batch of a model, with its weights if need be.

    Attributes:
        service_ns: Expected time of the batch on a device.
        turn: Counts placements; the memory of `round_robin`.
    """

    model: str
    weight_bytes: int
    lease_bytes: int
    priority_class: int
    service_ns: int
    turn: int
    weights: PlacementWeights


@dataclass(frozen=True, slots=True)
class Choice:
    """Say which device a policy chose and why; "" means wait."""

    device: str
    reason: Reason
    terms: tuple[tuple[str, Number], ...] = ()


Placement = Callable[[MemoryState, Want], Choice]
"""A placement policy: all devices that could serve, what is wanted, one of them."""


def holds(device: DeviceState, model: str) -> bool:
    """Return whether the model's weights are on the device."""
    return any(resident.model == model for resident in device.residents)


def wait_ns(device: DeviceState, now_ns: int) -> int:
    """Return the expected time until the device could start another batch."""
    running = max(0, device.busy_until_ns - now_ns)
    return running + (device.prepared.expected_ns if device.prepared else 0)


def swap_ns(device: DeviceState, want: Want) -> int:
    """Return the expected time until the model's weights are on the device; 0 if they are."""
    if holds(device, want.model):
        return 0
    return device.queued_ns + int(want.weight_bytes / device.load_bytes_per_s * 1e9)


def after_load(device: DeviceState, size_bytes: int) -> tuple[float, float, bool]:
    """Return (headroom, external fragmentation, fits without eviction) after a load.

    The block comes from the smallest hole that is large enough. Without one
    the device would have to evict: no headroom and a fully broken free space.
    """
    holes = device.holes
    index = bisect_left(holes, size_bytes)
    if index == len(holes):
        return 0.0, 1.0, False
    free = device.free_bytes - size_bytes
    rest = holes[index] - size_bytes
    largest = rest if index == len(holes) - 1 else holes[-1]
    if index == len(holes) - 1 and index:
        largest = max(rest, holes[-2])
    return max(0.0, free / device.pool_bytes), external(free, largest), True


def victim_class(device: DeviceState, size_bytes: int) -> int | None:
    """Return the most urgent class among the idle residents that would go; None: not enough."""
    idle = [r for r in device.residents if not (r.in_use or r.pinned)]
    idle.sort(key=lambda resident: resident.last_used_ns)
    won, most_urgent = device.free_bytes, 9
    for resident in idle:
        if won >= size_bytes:
            break
        won += resident.size_bytes
        most_urgent = min(most_urgent, resident.priority_class)
    return most_urgent if won >= size_bytes else None
