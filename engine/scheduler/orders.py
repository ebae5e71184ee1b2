"""Orders: what a device is told to do with weights - load, evict, move, convert."""

from __future__ import annotations

from engine.decisions import Kind, Reason
from engine.effects import ConvertWeights, EvictWeights, LoadWeights, MoveWeights
from engine.memory.holdings import Conversion
from engine.scheduler.books import Change, DeviceBooks, Eviction, Load, Reservation
from engine.scheduler.candidates import scratch_bytes
from engine.scheduler.step import Step


def load_now(step: Step, device: DeviceBooks, *, model: str, size_bytes: int) -> None:
    """Take the block of a load that fits, and tell the loader."""
    load_id = step.new_id()
    resident = device.pool.start_load(model, size_bytes, serial=load_id)
    took_ns = int(size_bytes / device.spec.load_bytes_per_s * 1e9)
    device.loader_free_ns = max(device.loader_free_ns, step.now_ns) + took_ns
    load = Load(load_id, device.spec.name, model, size_bytes, took_ns)
    device.loads[model] = load
    step.books.loads[load_id] = load
    step.decide(
        Kind.LOAD,
        Reason.QUEUE,
        model=model,
        device=device.spec.name,
        subject=load_id,
        numbers=(("bytes", size_bytes), ("offset", resident.offset)),
    )
    step.effects.append(
        LoadWeights(
            load_id, device.spec.name, model, resident.precision, resident.offset, size_bytes
        )
    )
    step.changed()


def evict(
    step: Step,
    device: DeviceBooks,
    *,
    model: str,
    reason: Reason,
    reservation: Reservation | None = None,
) -> None:
    """Send a resident away; its bytes count as held until the device says that it is gone."""
    resident = device.pool.residents[model]
    assert resident.users == 0, "a model in use is never evicted"
    resident.is_leaving = True
    name, eviction_id = device.spec.name, step.new_id()
    size_bytes = resident.size_bytes
    step.books.evictions[eviction_id] = Eviction(
        eviction_id, name, model, size_bytes, reservation
    )
    idle_ns = step.now_ns - resident.last_used_ns
    if reservation is not None:
        device.victim_idle_ns = idle_ns
    step.decide(
        Kind.EVICT,
        reason,
        model=model,
        device=name,
        subject=eviction_id,
        numbers=(
            ("bytes", size_bytes),
            ("idle_ms", idle_ns // 1_000_000),
            ("for", reservation.model if reservation else ""),
        ),
    )
    step.effects.append(EvictWeights(eviction_id, name, model, resident.offset, size_bytes))


def convert(
    step: Step,
    device: DeviceBooks,
    *,
    conversion: Conversion,
    reservation: Reservation | None,
) -> None:
    """Change a resident's precision; its scratch is a lease until that has ended."""
    model, precision = conversion.model, conversion.precision
    name = device.spec.name
    change = Change(step.new_id(), name, reservation, conversion=conversion)
    size = scratch_bytes(step, device, model=model, precision=precision)
    if 0 < size <= device.pool.lease_room_bytes:
        change.scratch = device.pool.start_lease(size)
    step.books.changes[change.id] = change
    is_smaller = conversion.new_size_bytes < conversion.size_bytes
    step.decide(
        Kind.CONVERT,
        Reason.CONVERT if is_smaller else Reason.RESTORED,
        model=model,
        device=name,
        subject=change.id,
        numbers=(
            ("precision", precision),
            ("from", conversion.offset),
            ("to", conversion.new_offset),
            ("bytes", conversion.new_size_bytes),
            ("before", conversion.size_bytes),
        ),
    )
    step.effects.append(
        ConvertWeights(
            change.id,
            name,
            model,
            precision,
            conversion.offset,
            conversion.new_offset,
            conversion.new_size_bytes,
        )
    )


def order_move(step: Step, device: DeviceBooks, *, reservation: Reservation) -> None:
    """Tell the worker the next move of a claim."""
    move = reservation.claim.moves[0]
    name = device.spec.name
    change = Change(step.new_id(), name, reservation, move=move)
    step.books.changes[change.id] = change
    reservation.change_id = change.id
    step.decide(
        Kind.MOVE,
        Reason.COMPACT,
        model=move.model,
        device=name,
        subject=change.id,
        numbers=(
            ("from", move.offset),
            ("to", move.new_offset),
            ("bytes", move.size_bytes),
            ("for", reservation.model),
        ),
    )
    step.effects.append(
        MoveWeights(change.id, name, move.model, move.offset, move.new_offset, move.size_bytes)
    )
