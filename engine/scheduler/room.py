"""Room: how a load or a lease gets its bytes - a hole, or residents that have to go first."""

from __future__ import annotations

from engine.decisions import Kind, Reason
from engine.effects import EvictWeights, LoadWeights
from engine.events import EvictFinished
from engine.memory.eviction import Candidate
from engine.memory.pool import Plan, Resident
from engine.scheduler.books import Batch, DeviceBooks, Eviction, Load, Reservation
from engine.scheduler.step import LAST, Step, Urgency


def evictable(
    step: Step, device: DeviceBooks, *, asking: str, urgency: Urgency
) -> list[Candidate]:
    """Return the residents that may go for a model's sake.

    Never one in use, on its way in or out, or pinned; one whose own requests
    wait only if those are less urgent than the asker's: the order of all
    requests is total, so that two models never evict each other in turns
    without a request being served.
    """
    books = step.books
    found: list[Candidate] = []
    for resident in device.pool.residents.values():
        if not resident.is_ready or resident.is_leaving or resident.users:
            continue
        model = books.models[resident.model]
        if model.name == asking or model.rules.pinned:
            continue
        has_queue = model.queued_items > 0 or any(lane.retries for lane in model.lanes)
        if has_queue and step.model_urgency(model.name) <= urgency:
            continue
        found.append(_candidate(resident, has_queue))
    return found


def _candidate(resident: Resident, has_queue: bool) -> Candidate:
    return Candidate(
        model=resident.model,
        size_bytes=resident.size_bytes,
        offset=resident.offset,
        last_used_ns=resident.last_used_ns,
        has_queue=has_queue,
        serial=resident.serial,
    )


def start_load(step: Step, device: DeviceBooks, *, model: str, urgency: Urgency) -> bool:
    """Decide a load: take its block now, or start winning it; return whether that worked.

    Raises nothing: without room the books stay as they were.
    """
    size_bytes = step.books.models[model].weight_bytes
    assert size_bytes > 0, "a model without a profile has no device to go to"
    plan = device.pool.plan_weights(
        size_bytes, evictable(step, device, asking=model, urgency=urgency)
    )
    if plan is None:
        return False
    if not plan.victims:
        _load_now(step, device, model=model, size_bytes=size_bytes)
        return True
    reservation = _reserve(step, device, model=model, size_bytes=size_bytes, plan=plan)
    device.reservations[reservation.id] = reservation
    return True


def _load_now(step: Step, device: DeviceBooks, *, model: str, size_bytes: int) -> None:
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


def _reserve(
    step: Step, device: DeviceBooks, *, model: str, size_bytes: int, plan: Plan
) -> Reservation:
    claim = device.pool.claim(size_bytes, plan)
    kind_of = Reservation(step.new_id(), "load", device.spec.name, model, claim)
    for victim in plan.victims:
        evict(step, device, model=victim, reason=Reason.LRU, reservation=kind_of)
    step.changed()
    return kind_of


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
    idle_ms = (step.now_ns - resident.last_used_ns) // 1_000_000
    for_whom = reservation.model if reservation else ""
    step.decide(
        Kind.EVICT,
        reason,
        model=model,
        device=name,
        subject=eviction_id,
        numbers=(("bytes", size_bytes), ("idle_ms", idle_ms), ("for", for_whom)),
    )
    step.effects.append(EvictWeights(eviction_id, name, model, resident.offset, size_bytes))


def try_lease(
    step: Step, device: DeviceBooks, *, batch: Batch, size_bytes: int, urgency: Urgency
) -> bool:
    """Give a batch its lease, or start winning the bytes; return whether either worked."""
    pool = device.pool
    model = batch.lane.key.model
    candidates: list[Candidate] = []
    if size_bytes > pool.lease_room_bytes:
        candidates = evictable(step, device, asking=model, urgency=urgency)
    plan = pool.plan_lease(size_bytes, candidates)
    if plan is None:
        return False
    if not plan.victims:
        batch.lease = pool.start_lease(size_bytes)
        return True
    reservation = _reserve(step, device, model=model, size_bytes=size_bytes, plan=plan)
    reservation.kind, reservation.batch = "lease", batch
    device.reservations[reservation.id] = reservation
    return True


def evict_finished(step: Step, event: EvictFinished) -> None:
    """Free or hand over the bytes of a resident that is gone."""
    eviction = step.books.evictions.pop(event.eviction_id, None)
    if eviction is None:
        return  # its device was lost meanwhile, with all its books
    device = step.books.devices[eviction.device]
    step.books.models[eviction.model].counters.evictions += 1
    reservation = eviction.reservation
    if reservation is None:
        device.pool.remove(eviction.model)
    elif device.pool.victim_gone(reservation.claim, eviction.model):
        _grant(step, device, reservation=reservation)
    step.changed()


def _grant(step: Step, device: DeviceBooks, *, reservation: Reservation) -> None:
    claim = reservation.claim
    device.pool.give_up(claim)
    del device.reservations[reservation.id]
    pool, size_bytes = device.pool, claim.size_bytes
    # The fence may have come down meanwhile: then the claim lapses.
    if reservation.is_revoked:
        return
    if reservation.kind == "load" and not pool.has_room(size_bytes):
        return
    if reservation.kind == "lease" and size_bytes > pool.lease_room_bytes:
        return
    if reservation.kind == "load":
        _load_now(step, device, model=reservation.model, size_bytes=claim.size_bytes)
        return
    batch = reservation.batch
    assert batch is not None, "a lease is for a batch"
    batch.lease = device.pool.start_lease(claim.size_bytes)


def settle_fence(step: Step, device: DeviceBooks) -> None:
    """Evict idle residents while the pool holds more than its fence allows."""
    pool = device.pool
    while pool.over_bytes > 0:
        beyond = [
            c
            for c in evictable(step, device, asking="", urgency=LAST)
            if pool.is_beyond_fence(c.offset, c.size_bytes) or pool.free_bytes < 0
        ]
        if not beyond:
            return
        beyond.sort(key=lambda c: (c.last_used_ns, c.serial))
        evict(step, device, model=beyond[0].model, reason=Reason.APPLIED)
        if pool.leaving_bytes() >= pool.over_bytes:
            return
