"""Sampling: what happened between two snapshots, as the rows of one second."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.decisions import STORED_ALWAYS, Decision, Kind, Reason
from engine.memory.fragmentation import internal, unusable
from engine.memory.state import DeviceState
from engine.metrics import Counters, LatencyHistogram
from engine.snapshot import ModelState, Snapshot
from engine.units import counter_hash, format_bytes
from ops.recent import Mark, Second
from storage.samples import DeviceSample, ModelSample

SAMPLED_PER_SECOND = 20
"""Decisions of the frequent kinds that are stored; all are counted by reason in snapshots."""

_NOTHING = LatencyHistogram()
_NOTHING_BYTES = _NOTHING.to_bytes()


def sample(before: Snapshot, after: Snapshot, *, at_ms: int) -> Second:
    """Return the rows of the time between two snapshots.

    Counts and histograms are differences, everything else is how it stood at
    the end. A device or model that was not there before starts from nothing.

    Args:
        at_ms: Wall time of `after`, milliseconds since the epoch.
    """
    elapsed_ns = after.at_ns - before.at_ns
    devices = {device.name: device for device in before.memory.devices}
    models = {model.name: model for model in before.models}
    return Second(
        at_ms,
        tuple(
            _device(devices.get(now.name), now, after=after, span=(at_ms, elapsed_ns))
            for now in after.memory.devices
        ),
        tuple(_model(models.get(now.name), now, at_ms=at_ms) for now in after.models),
    )


def _device(
    before: DeviceState | None,
    now: DeviceState,
    *,
    after: Snapshot,
    span: tuple[int, int],
) -> DeviceSample:
    at_ms, elapsed_ns = span
    busy_ns = now.busy_ns - (before.busy_ns if before else 0)
    return DeviceSample(
        at_ms=at_ms,
        device=now.name,
        pool_bytes=now.pool_bytes,
        reserve_bytes=now.reserve_bytes,
        resident_bytes=now.resident_bytes,
        lease_bytes=now.lease_bytes,
        free_bytes=now.free_bytes,
        largest_hole_bytes=now.largest_hole_bytes,
        external_fragmentation=now.external_fragmentation,
        unusable=_unusable(now, after),
        internal_fragmentation=internal(now.lease_bytes, now.needed_lease_bytes),
        busy=min(1.0, busy_ns / elapsed_ns) if elapsed_ns > 0 else 0.0,
        running_items=now.running.items if now.running else 0,
        pending_loads=len(now.pending_loads),
        truth_bytes=now.truth_bytes,
    )


def _unusable(device: DeviceState, after: Snapshot) -> float:
    """Return the share of free bytes that the largest model not resident cannot use.

    Returns:
        0 where every model is resident: nothing is wanted that could miss its bytes.
    """
    sizes = [m.weight_bytes for m in after.models if device.name not in m.resident_on]
    largest = max(sizes, default=0)
    return unusable(device.holes, largest) if largest else 0.0


def _model(before: ModelState | None, now: ModelState, *, at_ms: int) -> ModelSample:
    since = now.counters.minus(before.counters if before else Counters())
    return ModelSample(
        at_ms=at_ms,
        model=now.name,
        submitted=since.submitted,
        completed=since.completed,
        failed=since.failed,
        refused=since.refused,
        expired=since.expired,
        cancelled=since.cancelled,
        items=since.items_completed,
        batches=since.batches,
        good=since.good,
        loads=since.loads,
        evictions=since.evictions,
        loaded_bytes=since.loaded_bytes,
        queued_items=now.queued_items,
        residents=len(now.resident_on),
        latency=_since(now.latency, before.latency if before else _NOTHING),
        queueing=_since(now.queueing, before.queueing if before else _NOTHING),
        service=_since(now.service, before.service if before else _NOTHING),
    )


def _since(now: LatencyHistogram, before: LatencyHistogram) -> bytes:
    """Return what was recorded in between; most models rest in most seconds."""
    return _NOTHING_BYTES if now.count == before.count else now.subtract(before).to_bytes()


def chosen(decisions: Iterable[Decision]) -> list[Decision]:
    """Return the decisions to store of one second, oldest first.

    All of the rare kinds, and a fixed number of the frequent ones. Which ones
    follows from their serial numbers alone, so that a replay stores the same.
    """
    rare: list[Decision] = []
    frequent: list[Decision] = []
    for decision in decisions:
        (rare if decision.kind in STORED_ALWAYS else frequent).append(decision)
    frequent.sort(key=lambda decision: counter_hash(decision.serial))
    return sorted(rare + frequent[:SAMPLED_PER_SECOND], key=lambda decision: decision.serial)


def marks(decisions: Sequence[Decision], *, start_wall_ns: int) -> tuple[Mark, ...]:
    """Return what charts should point out of these decisions.

    Args:
        start_wall_ns: Wall time at the engine clock's zero, since the epoch.
    """
    found = []
    for decision in decisions:
        numbers = dict(decision.numbers)
        at_ms = (start_wall_ns + decision.at_ns) // 1_000_000
        where = f"{decision.model} {decision.device}".strip()
        match decision.kind:
            case Kind.POLICY:
                text = f"v{decision.subject} {numbers['author']}: {numbers['why']}"
                found.append(Mark(at_ms, "policy", text))
            case Kind.EVICT:
                found.append(Mark(at_ms, "evict", f"{where} {_size(numbers)}"))
            case Kind.LOAD if decision.reason in (Reason.ERROR, Reason.MODEL_FAILED):
                found.append(Mark(at_ms, "alert", f"{where}: {numbers.get('error', '')}"))
            case Kind.LOAD:
                found.append(Mark(at_ms, "load", f"{where} {_size(numbers)}"))
            case Kind.DEVICE if decision.reason is Reason.DEVICE_LOST:
                found.append(Mark(at_ms, "alert", f"{where} lost: {numbers['error']}"))
            case Kind.REFUSE:
                found.append(Mark(at_ms, "alert", f"{where} refuses: {decision.reason}"))
            case _:
                pass
    return tuple(found)


def _size(numbers: dict[str, int | float | str]) -> str:
    size = numbers.get("bytes")
    return format_bytes(size) if isinstance(size, int) else ""
