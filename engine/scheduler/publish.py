"""Publish: the books as frozen values, for placement, pages and whoever asks."""

from __future__ import annotations

from dataclasses import replace

from engine.batching.lanes import ModelBooks
from engine.memory.fragmentation import external
from engine.memory.state import (
    BatchState,
    DeviceState,
    MemoryState,
    ResidentState,
)
from engine.reserve import ReservePart
from engine.scheduler.blocks import blocks
from engine.scheduler.books import Batch, DeviceBooks
from engine.scheduler.candidates import price_ns
from engine.scheduler.limits import safe_items
from engine.scheduler.step import Step
from engine.snapshot import LaneState, ModelState, Snapshot


def snapshot(step: Step) -> Snapshot:
    """Return the whole engine as a value that nobody else changes."""
    books = step.books
    books.next_snapshot += 1
    counts = sorted(books.decision_counts.items())
    return Snapshot(
        serial=books.next_snapshot,
        at_ns=step.now_ns,
        policy_version=books.policy.version,
        is_paused=books.is_paused,
        memory=MemoryState(
            step.now_ns, tuple(device_state(step, d) for d in books.devices.values())
        ),
        lanes=_lanes(step),
        models=tuple(_model_state(step, model) for model in books.models.values()),
        decision_counts=tuple((kind, reason, count) for (kind, reason), count in counts),
        no_hole_events=books.no_hole_events,
    )


def _lanes(step: Step) -> tuple[LaneState, ...]:
    return tuple(
        LaneState(
            key=lane.key,
            queued_items=lane.queued_items,
            queued_requests=lane.queued_requests,
            oldest_ns=lane.oldest_ns() or 0,
            effective_class=min(step.urgency(lane)[0], lane.rules.priority_class),
        )
        for lane in step.books.lane_list
    )


def _model_state(step: Step, model: ModelBooks) -> ModelState:
    devices = step.books.devices.values()
    safe = (
        (device.spec.name, safe_items(step, lane, device=device))
        for lane in model.lanes[:1]
        for device in devices
    )
    return ModelState(
        name=model.name,
        counters=model.counters.copy(),
        latency=model.latency.copy(),
        queueing=model.queueing.copy(),
        service=model.service.copy(),
        queued_items=model.queued_items,
        running_items=model.running_items,
        resident_on=tuple(d.spec.name for d in devices if d.holds(model.name)),
        loading_on=tuple(d.spec.name for d in devices if d.is_winning(model.name)),
        weight_bytes=model.weight_bytes,
        host_bytes=model.host_bytes,
        safe_items=tuple(safe),
        is_on_disk=model.is_on_disk,
        sizes=tuple(model.sizes.items()),
        overshoots=model.overshoots,
        measured_share=model.measured_share,
        demand=_demand(step, model.name),
    )


def _demand(step: Step, model: str) -> float:
    demand = step.books.demands.get(model)
    window_ns = step.books.policy.memory.demand_window_ns
    return 0.0 if demand is None else demand.at(step.now_ns, window_ns)


def device_state(step: Step, device: DeviceBooks) -> DeviceState:
    """Return one device as a value."""
    residents = device.pool.residents
    priced = tuple(
        replace(s, price_ns=round(price_ns(step, device, resident=residents[s.model])))
        for s in _residents(step, device)
    )
    light = placement_state(step, device)
    return replace(light, blocks=blocks(device), residents=priced)


def placement_state(step: Step, device: DeviceBooks) -> DeviceState:
    """Return one device as placement sees it: without its map of blocks and without prices."""
    pool, spec = device.pool, device.spec
    holes = pool.arena.holes()
    sizes = tuple(sorted(size for _, size in holes))
    largest = sizes[-1] if sizes else 0
    free = sum(sizes)
    running = _batch_state(step, device.running)
    needed = device.running.needed_bytes if device.running else 0
    prepared = device.prepared
    if prepared is not None and prepared.lease is not None:
        needed += prepared.lease.size_bytes
    return DeviceState(
        name=spec.name,
        kind=spec.kind,
        simulated=spec.kind == "simulated",
        addressed=spec.addressed,
        capacity_bytes=spec.capacity_bytes,
        reserve_bytes=_reserve_bytes(step, device),
        reserve_parts=_reserve_parts(step, device),
        pool_bytes=pool.pool_bytes,
        pool_target_bytes=pool.target_bytes,
        resident_bytes=sum(r.size_bytes for r in pool.residents.values()),
        lease_bytes=pool.lease_bytes,
        needed_lease_bytes=needed,
        free_bytes=pool.free_bytes,
        largest_hole_bytes=largest,
        external_fragmentation=external(free, largest),
        holes=sizes,
        blocks=(),
        residents=_residents(step, device),
        running=running,
        prepared=_batch_state(step, prepared),
        pending_loads=_pending_loads(device),
        busy_until_ns=device.busy_until_ns if device.running else 0,
        queued_ns=max(0, device.loader_free_ns - step.now_ns) if device.loads else 0,
        load_bytes_per_s=spec.load_bytes_per_s,
        is_draining=device.is_draining,
        is_lost=device.is_lost,
        truth_bytes=device.truth_bytes,
        busy_ns=device.busy_ns + (step.now_ns - running.since_ns if running else 0),
        warm_bytes=device.warm.size_bytes if device.warm else 0,
        move_bytes_per_s=spec.move_bytes_per_s,
        moves=device.moves,
        moved_bytes=device.moved_bytes,
        conversions=device.conversions,
        evictions=device.evictions,
        victim_idle_ns=device.victim_idle_ns,
    )


def _reserve_bytes(step: Step, device: DeviceBooks) -> int:
    """Return what is never lent: what the policy sets aside, and the guard page."""
    spec = device.spec
    wanted = step.books.policy.reserve_of(spec.name, spec.reserve_bytes)
    return wanted + device.pool.arena.guard_bytes


def _reserve_parts(step: Step, device: DeviceBooks) -> tuple[ReservePart, ...]:
    """Return what the reserve is kept for; the parts add up to it."""
    spec, policy = device.spec, step.books.policy
    parts = spec.reserve_parts or (ReservePart("reserve", spec.reserve_bytes),)
    more = policy.reserve_of(spec.name, spec.reserve_bytes) - spec.reserve_bytes
    if more:
        is_set = spec.name in policy.reserve_bytes
        name, why = ("more", "set by the policy") if is_set else ("NCCL", "by connections")
        parts = (*parts, ReservePart(name, more, why))
    guard = device.pool.arena.guard_bytes
    return (*parts, ReservePart("guard", guard, "the arena's first bytes")) if guard else parts


def _pending_loads(device: DeviceBooks) -> tuple[str, ...]:
    winning = [
        r.model for r in device.reservations.values() if r.kind == "load" and not r.is_revoked
    ]
    return (*device.loads, *winning)


def _batch_state(step: Step, batch: Batch | None) -> BatchState | None:
    if batch is None:
        return None
    lane = batch.lane
    head = step.urgency(lane)[0] if not batch.parts else batch.parts[0][0].priority_class
    return BatchState(
        batch_id=batch.id,
        model=lane.key.model,
        items=batch.items or min(lane.queued_items, batch.capacity),
        capacity_items=batch.capacity,
        lease_bytes=batch.lease.size_bytes if batch.lease else 0,
        priority_class=min(head, lane.rules.priority_class),
        since_ns=batch.started_ns or batch.prepared_ns,
        expected_ns=batch.expected_ns,
    )


def _residents(step: Step, device: DeviceBooks) -> tuple[ResidentState, ...]:
    found = []
    for resident in device.pool.residents.values():
        if not resident.is_ready or resident.is_leaving:
            continue
        model = step.books.models[resident.model]
        found.append(
            ResidentState(
                model=resident.model,
                offset=resident.offset,
                size_bytes=resident.size_bytes,
                precision=resident.precision,
                priority_class=min(
                    model.rules.priority_class, step.model_urgency(model.name)[0]
                ),
                loaded_ns=resident.loaded_ns,
                last_used_ns=resident.last_used_ns,
                in_use=resident.users > 0,
                pinned=model.rules.pinned,
                loads=device.load_counts.get(resident.model, 0),
                is_movable=resident.is_movable,
                is_changing=resident.is_changing,
                full_bytes=resident.full_bytes,
                price_ns=0,
            )
        )
    return tuple(found)
