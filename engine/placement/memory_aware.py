"""Memory aware: a batch goes where it leaves the memory in the best state, soon."""

from __future__ import annotations

from engine.decisions import Number, Reason
from engine.memory.state import DeviceState, MemoryState
from engine.placement.score import (
    Choice,
    Want,
    after_load,
    holds,
    swap_ns,
    victim_class,
    wait_ns,
)

SHOWN = 3
TERMS = ("headroom", "fragmentation", "queue", "swap", "victim_class")


def terms(device: DeviceState, want: Want, *, now_ns: int) -> tuple[float, ...] | None:
    """Return the terms of a device in the order of `TERMS`, each from 0 (best) upwards.

    Waiting and loading are counted in service times of the batch itself, so
    that the weights mean the same for a small and a large model. A device
    that cannot make room has no score.
    """
    service = max(1, want.service_ns)
    queue = wait_ns(device, now_ns) / service
    if holds(device, want.model):
        share = device.free_bytes / device.pool_bytes
        return 1 - share, device.external_fragmentation, queue, 0.0, 0.0
    free, broken, fits = after_load(device, want.weight_bytes)
    swap = swap_ns(device, want) / service
    if fits:
        return 1 - free, broken, queue, swap, 0.0
    victim = victim_class(device, want.weight_bytes)
    if victim is None:
        return None
    return 1 - free, broken, queue, swap, (9 - victim) / 9


def memory_aware(state: MemoryState, want: Want) -> Choice:
    """Take the device with the lowest weighted sum of terms.

    A busy holder may be worth its wait. Ties go to the device that was added first.
    """
    weights = want.weights
    factors = (
        weights.headroom,
        weights.fragmentation,
        weights.queue,
        weights.swap,
        weights.victim_class,
    )
    scored: list[tuple[float, int, tuple[float, ...]]] = []
    for index, device in enumerate(state.devices):
        values = terms(device, want, now_ns=state.at_ns)
        if values is not None:
            score = sum(f * v for f, v in zip(factors, values, strict=True))
            scored.append((score, index, values))
    if not scored:
        return Choice("", Reason.NO_ROOM)
    scored.sort()
    best = state.devices[scored[0][1]]
    reason = Reason.BEST_SCORE
    if best.prepared is not None and holds(best, want.model):
        reason = Reason.WAIT_FOR_HOLDER
    return Choice(best.name, reason, _shown(state, scored))


def _shown(
    state: MemoryState, scored: list[tuple[float, int, tuple[float, ...]]]
) -> tuple[tuple[str, Number], ...]:
    shown: list[tuple[str, Number]] = []
    for score, index, values in scored[:SHOWN]:
        name = state.devices[index].name
        shown.append((name, round(score, 4)))
        shown += [
            (f"{name}.{term}", round(value, 4))
            for term, value in zip(TERMS, values, strict=True)
        ]
    return tuple(shown)
