"""Precision: conversions that nobody's need for room asks for - by hand, and back to full."""

from __future__ import annotations

from engine.decisions import Kind, Reason
from engine.events import OperatorCommand
from engine.memory.holdings import ALIGNMENT, Conversion, Plan, Resident
from engine.scheduler.books import DeviceBooks
from engine.scheduler.candidates import scratch_bytes
from engine.scheduler.claims import carry_out, reserve
from engine.scheduler.orders import convert, evict
from engine.scheduler.step import FULL, Step
from engine.units import align_up


def convert_by_hand(step: Step, device: DeviceBooks, *, event: OperatorCommand) -> None:
    """Give an idle resident the precision that an operator ordered, if that can be done.

    It keeps a lower one until it is evicted, or the policy forbids it.
    """
    resident = device.pool.residents.get(event.model)
    if resident is None or not resident.is_idle or resident.precision == event.precision:
        return _refuse(step, device, event=event, why="not idle, or so already")
    if event.precision == FULL:
        if not device.pool.has_room(resident.full_bytes):
            return _refuse(step, device, event=event, why="no room for it")
        resident.is_kept = False
        return _restore(step, device, resident=resident)
    model = step.books.models[event.model]
    size = align_up(model.sizes.get(event.precision, 0), ALIGNMENT)
    scratch = scratch_bytes(step, device, model=model.name, precision=event.precision)
    if not 0 < size < resident.size_bytes or scratch > device.pool.lease_room_bytes:
        return _refuse(step, device, event=event, why="not smaller, or no scratch for it")
    at, before = resident.offset, resident.size_bytes
    conversion = Conversion(event.model, event.precision, at, at, before, size)
    plan = Plan(conversions=(conversion,))
    reservation = reserve(step, device, plan=plan, size_bytes=before - size, purpose="hole")
    carry_out(step, device, plan=plan, reservation=reservation)
    resident.is_kept = True
    return None


def _refuse(step: Step, device: DeviceBooks, *, event: OperatorCommand, why: str) -> None:
    step.decide(
        Kind.CONVERT,
        Reason.NO_ROOM,
        model=event.model,
        device=device.spec.name,
        numbers=(("precision", event.precision), ("why", why)),
    )


def restore(step: Step) -> None:
    """Give residents their full precision back where memory has returned.

    One at a time per device, the one used last first, while nobody waits for
    memory and the policy's share of the pool stays free. A precision that the
    policy does not allow any more ends in any case: without room by eviction.
    """
    books = step.books
    is_short = any(lane.is_blocked for lane in books.ready.values())
    for device in books.devices.values():
        if not device.conversions or device.reservations or not device.is_open:
            continue
        residents = device.pool.residents.values()
        reduced = [r for r in residents if r.precision != FULL and r.is_idle]
        forbidden = [
            r for r in reduced if r.precision not in books.models[r.model].rules.precisions
        ]
        if forbidden:
            _end_precision(step, device, resident=forbidden[0])
            continue
        wanted = [
            r for r in reduced if not r.is_kept and _is_affordable(step, device, resident=r)
        ]
        if wanted and not is_short:
            latest = max(wanted, key=lambda r: (r.last_used_ns, r.serial))
            _restore(step, device, resident=latest)


def _end_precision(step: Step, device: DeviceBooks, *, resident: Resident) -> None:
    model = step.books.models[resident.model]
    if FULL not in model.unconvertible and device.pool.has_room(resident.full_bytes):
        _restore(step, device, resident=resident)
    elif not model.rules.pinned:
        evict(step, device, model=resident.model, reason=Reason.APPLIED)


def _is_affordable(step: Step, device: DeviceBooks, *, resident: Resident) -> bool:
    pool = device.pool
    growth = resident.full_bytes - resident.size_bytes
    spare = pool.pool_bytes * step.books.policy.memory.restore_share
    return (
        FULL not in step.books.models[resident.model].unconvertible
        and pool.has_room(resident.full_bytes)
        and pool.free_bytes - growth >= spare
    )


def _restore(step: Step, device: DeviceBooks, *, resident: Resident) -> None:
    pool = device.pool
    conversion = pool.start_growth(resident.model, FULL, size_bytes=resident.full_bytes)
    convert(step, device, conversion=conversion, reservation=None)
    step.changed()
