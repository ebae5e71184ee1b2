"""Claims: how bytes are won - victims leave, residents move or shrink, then the bytes go."""

from __future__ import annotations

from typing import Literal

from engine.decisions import Reason
from engine.events import EvictFinished
from engine.memory.holdings import Plan
from engine.scheduler.books import Batch, DeviceBooks, Reservation
from engine.scheduler.orders import convert, evict, load_now, order_move
from engine.scheduler.step import Step
from engine.units import NS_PER_S

Purpose = Literal["load", "lease", "hole"]


def reserve(
    step: Step, device: DeviceBooks, *, plan: Plan, size_bytes: int, purpose: Purpose
) -> Reservation:
    """Start winning the bytes of a plan; whoever wants them is filled in by the caller."""
    claim = device.pool.claim(size_bytes, plan)
    name = device.spec.name
    reservation = Reservation(step.new_id(), purpose, name, "", claim)
    device.reservations[reservation.id] = reservation
    return reservation


def carry_out(step: Step, device: DeviceBooks, *, plan: Plan, reservation: Reservation) -> None:
    """Tell the device what the plan needs, as far as it can be done now."""
    reason = Reason(step.books.policy.memory.eviction)
    for victim in plan.victims:
        evict(step, device, model=victim, reason=reason, reservation=reservation)
    for conversion in plan.conversions:
        convert(step, device, conversion=conversion, reservation=reservation)
    charge(step, device, moved_bytes=plan.moved_bytes)
    advance(step, device, reservation=reservation)
    step.changed()


def charge(step: Step, device: DeviceBooks, *, moved_bytes: int) -> None:
    """Put moves on the device's account."""
    if moved_bytes:
        device.debt_bytes = debt_bytes(step, device) + moved_bytes
        device.debt_at_ns = step.now_ns


def debt_bytes(step: Step, device: DeviceBooks) -> int:
    """Return the moved bytes that the budget per second has not paid off yet."""
    rate = step.books.policy.memory.move_bytes_per_s
    paid = (step.now_ns - device.debt_at_ns) * rate // NS_PER_S
    return max(0, device.debt_bytes - paid)


def advance(step: Step, device: DeviceBooks, *, reservation: Reservation) -> None:
    """Do what is next for a claim: wait, move, or hand over what was won."""
    claim = reservation.claim
    if claim.waiting_for or claim.converting or reservation.change_id:
        return
    if reservation.is_revoked:
        claim.moves.clear()
    if claim.moves:
        order_move(step, device, reservation=reservation)
    else:
        _grant(step, device, reservation=reservation)


def _grant(step: Step, device: DeviceBooks, *, reservation: Reservation) -> None:
    """Hand over what was won; where it is not enough any more the claim lapses."""
    claim, pool = reservation.claim, device.pool
    pool.give_up(claim)
    del device.reservations[reservation.id]
    if reservation.is_revoked:
        return
    size_bytes = claim.size_bytes
    # The fence may have come down meanwhile, or a move have failed.
    if reservation.kind == "load" and pool.has_room(size_bytes):
        load_now(step, device, model=reservation.model, size_bytes=size_bytes)
    if reservation.kind == "lease" and size_bytes <= pool.lease_room_bytes:
        batch = reservation.batch
        assert batch is not None, "a lease is for a batch"
        batch.lease = pool.start_lease(size_bytes)


def evict_finished(step: Step, event: EvictFinished) -> None:
    """Free or hand over the bytes of a resident that is gone."""
    eviction = step.books.evictions.pop(event.eviction_id, None)
    if eviction is None:
        return  # its device was lost meanwhile, with all its books
    device = step.books.devices[eviction.device]
    step.books.models[eviction.model].counters.evictions += 1
    device.evictions += 1
    reservation = eviction.reservation
    if reservation is None:
        device.pool.remove(eviction.model)
    else:
        device.pool.victim_gone(reservation.claim, eviction.model)
        advance(step, device, reservation=reservation)
    step.changed()


def end_batch_claim(device: DeviceBooks, batch: Batch) -> None:
    """Let the bytes that are being won for a batch go to nobody."""
    for reservation in device.reservations.values():
        if reservation.batch is batch:
            reservation.is_revoked = True
