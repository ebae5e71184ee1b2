"""Room: loads and leases get their bytes; the fence and the operator get theirs."""

from __future__ import annotations

from dataclasses import replace

from engine.batching.lanes import Lane
from engine.decisions import Reason
from engine.memory.compaction import Budget, largest_openable, plan_compaction
from engine.memory.eviction import EVICTIONS
from engine.memory.holdings import Plan
from engine.scheduler.books import Batch, DeviceBooks
from engine.scheduler.candidates import candidates
from engine.scheduler.claims import carry_out, reserve
from engine.scheduler.ladder import Found, Need, climb, record
from engine.scheduler.orders import evict, load_now
from engine.scheduler.step import BY_HAND, LAST, Step, Urgency


def start_load(
    step: Step, device: DeviceBooks, *, model: str, urgency: Urgency, lane: Lane | None = None
) -> bool:
    """Decide a load: take its block now, or start winning it; return whether that worked.

    Raises nothing: without room the books stay as they were.
    """
    books = step.books.models[model]
    size_bytes, quota = books.weight_bytes, books.rules.quota_bytes
    assert size_bytes > 0, "a model without a profile has no device to go to"
    if quota is not None and size_bytes > quota:
        return False
    if not device.pool.has_room(size_bytes):
        drop_warm(device)
    if device.pool.has_room(size_bytes):
        load_now(step, device, model=model, size_bytes=size_bytes)
        return True
    found = climb(step, device, need=Need(model, urgency, size_bytes, True, lane=lane))
    if found is None:
        return False
    reservation = reserve(step, device, plan=found.plan, size_bytes=size_bytes, purpose="load")
    reservation.model = model
    carry_out(step, device, plan=found.plan, reservation=reservation)
    return True


def try_lease(step: Step, device: DeviceBooks, *, batch: Batch, need: Need) -> int:
    """Give a batch its lease, or start winning the bytes; return their number, 0: no way."""
    pool = device.pool
    found: Found | None = Found(Plan(), need.size_bytes)
    if need.size_bytes > pool.lease_room_bytes:
        found = climb(step, device, need=need)
    if found is None:
        return 0
    if found.plan.is_free:
        batch.lease = pool.start_lease(found.size_bytes)
        return found.size_bytes
    reservation = reserve(
        step, device, plan=found.plan, size_bytes=found.size_bytes, purpose="lease"
    )
    reservation.model, reservation.batch = need.model, batch
    carry_out(step, device, plan=found.plan, reservation=reservation)
    return found.size_bytes


def drop_warm(device: DeviceBooks) -> None:
    """Give back the lease that is kept warm, if there is one."""
    if device.warm is not None:
        device.pool.end_lease(device.warm)
        device.warm = None


def compact_by_hand(step: Step, device: DeviceBooks, *, size_bytes: int) -> None:
    """Open a hole of that size by moves alone, or the largest that moves can open."""
    drop_warm(device)
    pool = device.pool
    arena = pool.arena
    crowd = candidates(step, device, asking="", urgency=BY_HAND)
    wanted = size_bytes or largest_openable(
        arena.holes(), crowd.all, fence_bytes=arena.fence_bytes
    )
    need = Need("", BY_HAND, wanted, for_weights=True)
    found = None
    if wanted > arena.largest_hole_bytes:
        budget = Budget(1e9 / device.spec.move_bytes_per_s, arena.size_bytes)
        order = EVICTIONS["lru"].order(crowd.all)
        plan = plan_compaction(
            arena.holes(),
            [replace(c, may_leave=False) for c in order],
            size_bytes=wanted,
            budget=budget,
            fence_bytes=arena.fence_bytes,
        )
        found = None if plan is None else Found(plan, wanted)
    record(step, device, need=need, rung="compact", found=found)
    if found is not None:
        plan = found.plan
        reservation = reserve(
            step, device, plan=plan, size_bytes=need.size_bytes, purpose="hole"
        )
        carry_out(step, device, plan=plan, reservation=reservation)


def settle_fence(step: Step, device: DeviceBooks) -> None:
    """Evict idle residents while the pool holds more than its fence allows."""
    pool = device.pool
    if pool.over_bytes > 0:
        drop_warm(device)
    while pool.over_bytes > 0:
        crowd = candidates(step, device, asking="", urgency=LAST)
        beyond = [
            c
            for c in crowd.all
            if c.may_leave
            and (pool.is_beyond_fence(c.offset, c.size_bytes) or pool.free_bytes < 0)
        ]
        if not beyond:
            return
        beyond.sort(key=lambda c: (c.last_used_ns, c.serial))
        evict(step, device, model=beyond[0].model, reason=Reason.APPLIED)
        if pool.leaving_bytes() >= pool.over_bytes:
            return
