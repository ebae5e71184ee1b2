"""Outcomes: batches and loads end, well or badly."""

from __future__ import annotations

from engine.batching.lanes import RetryGroup, Taken
from engine.decisions import Kind, Reason
from engine.effects import ResolveRequests
from engine.events import (
    BatchFailed,
    BatchFinished,
    FailureKind,
    LoadFailed,
    LoadFinished,
    WorkerReady,
)
from engine.request import FINAL, RequestState, RequestStep
from engine.scheduler.batches import end_running
from engine.scheduler.books import Batch, DeviceBooks, Load
from engine.scheduler.intake import refresh
from engine.scheduler.step import Step

MAX_SHOWN = 200


def worker_ready(step: Step, event: WorkerReady) -> None:
    """Let the batch that a worker was called for leave, with all that joined meanwhile."""
    step.books.devices[event.device].is_called = False
    step.at_hand = event.device
    step.is_dirty = True


def batch_finished(step: Step, event: BatchFinished) -> None:
    """Complete the requests of a batch whose every item is done."""
    batch = step.books.batches.get(event.batch_id)
    if batch is None:
        return  # its device was lost meanwhile, and the requests with it
    step.at_hand = batch.device
    end_running(step, step.books.devices[batch.device])
    books, now_ns = step.books, step.now_ns
    model = batch.lane.model
    counters = model.counters
    counters.batches += 1
    counters.items_completed += batch.items
    model.service.record(event.service_ns)
    if event.peak_bytes:
        _note_peak(step, batch, peak_bytes=event.peak_bytes)
    record, slo_ns = model.latency.record, model.rules.slo_ns
    requests = books.requests
    done: list[int] = []
    good = 0
    for request, _, count in batch.parts:
        request.done += count
        if request.done < request.items or request.state is not RequestState.RUNNING:
            continue
        request.state = RequestState.COMPLETED  # the table's FINISH; once per request
        latency_ns = now_ns - request.arrival_ns
        record(latency_ns)
        good += latency_ns <= slo_ns
        done.append(request.id)
        del requests[request.id]
    counters.completed += len(done)
    counters.good += good
    if done:
        step.effects.append(ResolveRequests(tuple(done)))


def _note_peak(step: Step, batch: Batch, *, peak_bytes: int) -> None:
    """Take note of what a batch really needed; one that took more than its lease is said."""
    model = batch.lane.model
    share = peak_bytes / max(1, batch.needed_bytes)
    before = model.measured_share
    model.measured_share = share if not before else max(share, 0.8 * before + 0.2 * share)
    if peak_bytes <= batch.needed_bytes:
        return
    model.overshoots += 1
    step.decide(
        Kind.PROFILE,
        Reason.MEASURED,
        model=model.name,
        device=batch.device,
        subject=batch.id,
        numbers=(("items", batch.items), ("peak", peak_bytes), ("lease", batch.needed_bytes)),
    )


def batch_failed(step: Step, event: BatchFailed) -> None:
    """Find out whose fault it was: halve and run again until the culprit stands alone."""
    batch = step.books.batches.get(event.batch_id)
    if batch is None:
        return
    device = step.books.devices[batch.device]
    if event.failure is FailureKind.DEVICE_LOST:
        lose_device(step, device, message=event.message)
        return
    step.at_hand = batch.device
    end_running(step, device)
    if event.failure is FailureKind.OUT_OF_MEMORY:
        _lower_cap(step, device, batch=batch)
    alive = [part for part in batch.parts if part[0].state not in FINAL]
    budget = step.books.policy.retry_batches if batch.retry is None else batch.retry.budget
    reason = (
        Reason.OUT_OF_MEMORY if event.failure is FailureKind.OUT_OF_MEMORY else Reason.ERROR
    )
    if len(alive) <= 1 or budget < 2:
        for request, _, _ in alive:
            fail(step, (request, 0, 0), reason=reason, message=event.message)
        refresh(step, batch.lane)
        return
    first, second = RetryGroup(alive, budget).halves()
    for request, _, _ in alive:
        request.step(RequestStep.RETURN)
    batch.lane.retries.extend((first, second))
    step.decide(
        Kind.RETRY,
        Reason.HALVED,
        model=batch.lane.key.model,
        device=device.spec.name,
        subject=batch.id,
        numbers=(("parts", len(alive)), ("budget", budget), ("error", _short(event.message))),
    )
    refresh(step, batch.lane)


def fail(step: Step, part: Taken, *, reason: Reason, message: str) -> None:
    """Fail a request as a whole, wherever its other items are."""
    request = part[0]
    if request.state in FINAL:
        return
    step.leave_queue(request)
    step.reject(request, RequestStep.FAIL, reason=reason, message=_short(message))


def _lower_cap(step: Step, device: DeviceBooks, *, batch: Batch) -> None:
    model = batch.lane.model
    cap = max(1, batch.items // 2)
    model.caps[device.spec.kind] = cap
    step.decide(
        Kind.PROFILE,
        Reason.OUT_OF_MEMORY,
        model=model.name,
        device=device.spec.name,
        subject=batch.id,
        numbers=(("items", batch.items), ("cap", cap), ("lease_bytes", batch.needed_bytes)),
    )


def load_finished(step: Step, event: LoadFinished) -> None:
    """Open a resident for batches."""
    load = step.books.loads.pop(event.load_id, None)
    if load is None:
        return
    device = step.books.devices[load.device]
    del device.loads[load.model]
    resident = device.pool.residents[load.model]
    resident.is_ready = True
    resident.loaded_ns = resident.last_used_ns = step.now_ns
    device.load_counts[load.model] = device.load_counts.get(load.model, 0) + 1
    counters = step.books.models[load.model].counters
    counters.loads += 1
    counters.loaded_bytes += load.size_bytes
    step.changed()


def load_failed(step: Step, event: LoadFailed) -> None:
    """Free the block; without another replica the waiting requests fail with that reason."""
    load = step.books.loads.pop(event.load_id, None)
    if load is None:
        return
    device = step.books.devices[load.device]
    if event.failure is FailureKind.DEVICE_LOST:
        step.books.loads[load.id] = load
        lose_device(step, device, message=event.message)
        return
    del device.loads[load.model]
    device.pool.remove(load.model)
    step.decide(
        Kind.LOAD,
        Reason.ERROR,
        model=load.model,
        device=device.spec.name,
        subject=load.id,
        numbers=(("error", _short(event.message)),),
    )
    others = step.books.devices.values()
    if not any(d.holds(load.model) or d.is_winning(load.model) for d in others):
        _fail_waiting(step, load, message=event.message)
    step.changed()


def _fail_waiting(step: Step, load: Load, *, message: str) -> None:
    text = f"{load.model} could not be loaded onto {load.device}: {message}"
    for lane in step.books.models[load.model].lanes:
        for request in list(lane.waiting()):
            fail(step, (request, 0, 0), reason=Reason.MODEL_FAILED, message=text)
        lane.retries.clear()
        lane.assigned = ""
        refresh(step, lane)


def lose_device(step: Step, device: DeviceBooks, *, message: str) -> None:
    """Close a device for good: its work goes back to the queues, its books are emptied."""
    if device.is_lost:
        return
    books, name = step.books, device.spec.name
    device.is_lost = True
    step.decide(
        Kind.DEVICE,
        Reason.DEVICE_LOST,
        device=name,
        numbers=(("error", _short(message)),),
    )
    _give_back(step, device)
    for load in device.loads.values():
        books.loads.pop(load.id, None)
    for eviction_id in [e.id for e in books.evictions.values() if e.device == name]:
        del books.evictions[eviction_id]
    for change_id in [c.id for c in books.changes.values() if c.device == name]:
        del books.changes[change_id]
    device.loads.clear()
    device.reservations.clear()
    device.warm = None
    device.pool.reset()
    for lane in books.lane_list:
        if lane.assigned == name:
            lane.assigned = ""
    step.changed()


def _give_back(step: Step, device: DeviceBooks) -> None:
    from_prepared, device.prepared = device.prepared, None
    if from_prepared is not None:
        del step.books.batches[from_prepared.id]
        if from_prepared.retry is not None:
            from_prepared.lane.retries.appendleft(from_prepared.retry)
        else:
            from_prepared.lane.claimed_items -= from_prepared.capacity
        refresh(step, from_prepared.lane)
    if device.running is None:
        return
    batch = end_running(step, device)
    alive = [part for part in batch.parts if part[0].state not in FINAL]
    budget = step.books.policy.retry_batches if batch.retry is None else batch.retry.budget
    for request, _, _ in alive:
        request.step(RequestStep.RETURN)
    if alive:
        batch.lane.retries.append(RetryGroup(alive, budget))
    refresh(step, batch.lane)


def _short(message: str) -> str:
    text = " ".join(message.split())
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"
