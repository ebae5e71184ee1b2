"""Batches: a batch is prepared with lease and place, joined, sent to its device, and ended."""

from __future__ import annotations

from heapq import heappush
from math import ceil

from engine.batching.lanes import Lane, Taken
from engine.batching.watermarks import leave_reason
from engine.decisions import Kind, Reason
from engine.effects import CallWorker, RunBatch
from engine.memory.demand import Demand
from engine.profile import Profile
from engine.request import RequestState
from engine.scheduler.books import Batch, DeviceBooks
from engine.scheduler.claims import end_batch_claim
from engine.scheduler.intake import refresh
from engine.scheduler.ladder import Need
from engine.scheduler.limits import capacity
from engine.scheduler.room import drop_warm, try_lease
from engine.scheduler.step import Step, Urgency


def prepare(step: Step, lane: Lane, *, device: DeviceBooks, urgency: Urgency) -> bool:
    """Take a lease and the batch place, all or nothing.

    The full capacity if it fits as it is, or a smaller batch that takes all
    that waits; else the ladder of ways to make room, and at its end any batch
    of at least one item.
    """
    items, bound = capacity(step, lane, device=device)
    retry = lane.retries[0] if lane.retries else None
    if retry is not None:
        items = min(items, sum(count for _, _, count in retry.parts))
    if items < 1:
        return False
    profile = step.profile(lane, device)
    assert profile is not None, "placed only where there is a profile"
    batch = Batch(step.new_id(), lane, device.spec.name, items, bound, 0, step.now_ns)
    if not _take_room(step, device, batch=batch, urgency=urgency, profile=profile):
        return False
    if retry is not None:
        batch.retry = lane.retries.popleft()
    else:
        lane.claimed_items += batch.capacity
    batch.expected_ns = profile.latency.at(batch.capacity)
    _take_place(step, device, batch=batch)
    return True


def _take_room(
    step: Step, device: DeviceBooks, *, batch: Batch, urgency: Urgency, profile: Profile
) -> bool:
    """Find the bytes of a batch, for fewer items if need be."""
    lane, items, pool = batch.lane, batch.capacity, device.pool
    if _take_warm(device, batch=batch, size_bytes=profile.workspace_bytes(items)):
        return True
    fitting = profile.max_items(pool.lease_room_bytes)
    wanted = items if lane.retries else min(lane.queued_items or items, items)
    if wanted <= fitting < items:
        items, batch.bound = fitting, Reason.MEMORY_CAP
    if items <= fitting:
        batch.capacity = items
        batch.lease = pool.start_lease(profile.workspace_bytes(items))
        return True
    memory = step.books.policy.memory
    enough = max(1, ceil(wanted * memory.smallest_batch))
    smaller = 0
    if not lane.retries and enough <= fitting:
        smaller = profile.workspace_bytes(fitting)
    size = profile.workspace_bytes(items)
    need = Need(lane.key.model, urgency, size, False, smaller_bytes=smaller, lane=lane)
    found = try_lease(step, device, batch=batch, need=need)
    if not found and not lane.retries and fitting >= 1 and "smaller_batch" in memory.ladder:
        found = profile.workspace_bytes(fitting)
        batch.lease = pool.start_lease(found)
    if found and found < size:
        batch.capacity, batch.bound = fitting, Reason.MEMORY_CAP
    return found > 0


def _take_warm(device: DeviceBooks, *, batch: Batch, size_bytes: int) -> bool:
    """Let a batch have the lease that is kept warm, if it is large enough; or give it back."""
    if device.warm is None:
        return False
    if device.warm.size_bytes < size_bytes:
        drop_warm(device)
        return False
    batch.lease, device.warm = device.warm, None
    return True


def _take_place(step: Step, device: DeviceBooks, *, batch: Batch) -> None:
    lane = batch.lane
    device.prepared = batch
    device.pool.residents[lane.key.model].users += 1
    step.books.batches[batch.id] = batch
    lane.expected_ns = batch.expected_ns
    lane.assigned = ""
    lane.is_blocked = False
    latest_ns = _latest_start_ns(step, batch)
    if latest_ns is not None and latest_ns > step.now_ns:
        heappush(step.books.wakes, (latest_ns, lane.serial))
    refresh(step, lane)
    step.changed()


def withdraw(step: Step, device: DeviceBooks) -> None:
    """Take a prepared batch from its place; its requests wait in their lane as before."""
    batch = device.prepared
    assert batch is not None, "only a prepared batch can be withdrawn"
    device.prepared = None
    end_batch_claim(device, batch)
    lane = batch.lane
    _end_batch(step, device, batch=batch)
    if batch.retry is not None:
        lane.retries.appendleft(batch.retry)
    else:
        lane.claimed_items -= batch.capacity
    refresh(step, lane)
    step.changed()


def _end_batch(step: Step, device: DeviceBooks, *, batch: Batch) -> None:
    if batch.lease is not None:
        device.pool.end_lease(batch.lease)
        batch.lease = None
    resident = device.pool.residents.get(batch.lane.key.model)
    if resident is not None:
        resident.users -= 1
    del step.books.batches[batch.id]
    if step.books.policy.memory.preallocate and device.warm is None and device.is_open:
        _keep_warm(step, device, lane=batch.lane)


def _keep_warm(step: Step, device: DeviceBooks, *, lane: Lane) -> None:
    """Keep a lease at the lane's high watermark, so that weights do not take its bytes."""
    profile = step.profile(lane, device)
    if profile is None or device.reservations:
        return
    items, _ = capacity(step, lane, device=device)
    size = profile.workspace_bytes(items)
    if items >= 1 and 0 < size <= device.pool.lease_room_bytes:
        device.warm = device.pool.start_lease(size)


def end_running(step: Step, device: DeviceBooks) -> Batch:
    """Free the place and the lease of a batch that ended."""
    batch = device.running
    assert batch is not None, "only a running batch ends"
    device.running = None
    device.busy_ns += step.now_ns - batch.started_ns
    resident = device.pool.residents.get(batch.lane.key.model)
    if resident is not None:
        resident.last_used_ns = step.now_ns
    _end_batch(step, device, batch=batch)
    batch.lane.model.running_items -= batch.items
    step.changed()
    return batch


def let_leave(step: Step, device: DeviceBooks) -> None:
    """Start the prepared batch if its worker is at hand; else call the worker for it."""
    reason = _leave_reason(step, device)
    batch = device.prepared
    if reason is None or batch is None:
        return
    if device.spec.name != step.at_hand:
        if not device.is_called:
            device.is_called = True
            step.effects.append(CallWorker(device.spec.name))
        return
    lane = batch.lane
    if batch.retry is not None:
        _start(step, device, batch=batch, parts=batch.retry.alive(), reason=reason)
        return
    lane.claimed_items -= batch.capacity
    parts = lane.take(batch.capacity, step.now_ns, aging_ns=step.books.policy.aging_ns)
    _start(step, device, batch=batch, parts=parts, reason=reason)
    refresh(step, lane)


def _leave_reason(step: Step, device: DeviceBooks) -> Reason | None:
    """Return why the prepared batch may leave now; None: it has to stay, or is gone.

    Its bytes must be there and its fill rule must let it go. It gives its
    place back when nobody waits for it any more or its claim lapsed.
    """
    batch = device.prepared
    assert batch is not None, "asked for devices with a prepared batch"
    if batch.lease is None:
        if not any(r.batch is batch for r in device.reservations.values()):
            withdraw(step, device)
        return None
    if batch.retry is not None:
        return Reason.ERROR
    if not batch.lane.queued_items:
        withdraw(step, device)
        return None
    latest_ns = _latest_start_ns(step, batch)
    return leave_reason(batch.lane, batch.capacity, now_ns=step.now_ns, deadline_ns=latest_ns)


def _latest_start_ns(step: Step, batch: Batch) -> int | None:
    if not batch.lane.waits_patiently:
        return None
    deadlines = [r.deadline_ns for r in batch.lane.waiting() if r.deadline_ns is not None]
    return min(deadlines) - batch.expected_ns if deadlines else None


def _start(
    step: Step, device: DeviceBooks, *, batch: Batch, parts: list[Taken], reason: Reason
) -> None:
    """Send a batch to its device; without parts it gives its place back."""
    device.prepared = None
    if not parts:
        _end_batch(step, device, batch=batch)
        step.changed()
        return
    books, lane, now_ns = step.books, batch.lane, step.now_ns
    model = lane.model
    record = model.queueing.record
    items = 0
    for request, _, count in parts:
        items += count
        if count != request.items:
            batch.is_whole = False
        if batch.retry is None and request.taken >= request.items:
            books.queued_bytes -= request.size_bytes
        if request.state is RequestState.WAITING:
            request.state = RequestState.RUNNING  # the table's TAKE; once per request
            record(now_ns - request.arrival_ns)
    if batch.retry is None:
        model.queued_items -= items
        if model.is_refusing and model.queued_items * 2 <= books.policy.queue_items:
            model.is_refusing = False
    model.running_items += items
    batch.parts, batch.items, batch.started_ns = parts, items, now_ns
    _send(step, device, batch=batch, reason=reason)


def _send(step: Step, device: DeviceBooks, *, batch: Batch, reason: Reason) -> None:
    books, lane = step.books, batch.lane
    model = lane.model
    profile = step.profile(lane, device)
    assert profile is not None and batch.lease is not None, "prepared with both"
    if not books.policy.memory.preallocate:
        size = profile.workspace_bytes(batch.items)
        batch.lease = device.pool.shrink_lease(batch.lease, size)
    batch.needed_bytes = profile.workspace_bytes(batch.items)
    batch.expected_ns = profile.latency.at(batch.items)
    device.running = batch
    device.busy_until_ns = step.now_ns + batch.expected_ns
    _note_demand(step, model.name)
    books.virtual_ns = max(books.virtual_ns, model.virtual_ns)
    model.virtual_ns += batch.expected_ns * 1000 // model.rules.weight_milli
    lane.revocations = 0
    bound = batch.bound if batch.items >= batch.capacity else Reason.QUEUE
    step.decide(
        Kind.BATCH,
        reason,
        model=model.name,
        device=device.spec.name,
        subject=batch.id,
        numbers=(("items", batch.items), ("bound", bound), ("queued", lane.queued_items)),
    )
    step.effects.append(
        RunBatch(
            batch.id,
            device.spec.name,
            lane.key,
            batch.items,
            tuple([(request.id, first, count) for request, first, count in batch.parts]),
            batch.is_whole,
            batch.lease.offset,
            batch.lease.size_bytes,
        )
    )
    step.changed()


def _note_demand(step: Step, model: str) -> None:
    demands = step.books.demands
    demand = demands.get(model)
    if demand is None:
        demand = demands[model] = Demand()
    demand.note(step.now_ns, step.books.policy.memory.demand_window_ns)
