"""Dispatch: every ready lane gets a place on a device, or a load, or a reason to wait."""

from __future__ import annotations

from engine.batching.lanes import Lane
from engine.decisions import Kind, Reason
from engine.memory.state import MemoryState
from engine.placement.policies import POLICIES
from engine.placement.score import Choice, Want
from engine.scheduler.batches import let_leave, prepare, withdraw
from engine.scheduler.books import DeviceBooks
from engine.scheduler.limits import safe_items
from engine.scheduler.precision import restore
from engine.scheduler.publish import placement_state
from engine.scheduler.room import start_load
from engine.scheduler.step import Step, Urgency

MAX_REVOCATIONS = 2


def decide(step: Step) -> None:
    """Let every batch leave that may, give every ready lane a place, until nothing moves."""
    books = step.books
    while step.is_dirty and not books.is_paused:
        step.is_dirty = False
        for device in books.devices.values():
            if device.running is None and device.prepared is not None:
                let_leave(step, device)
        if books.ready:
            _place_ready(step)
    if books.reduced:
        restore(step)


def _place_ready(step: Step) -> None:
    """Place the lanes that found no place in this epoch yet, the most urgent first.

    Once every place is taken only two kinds of lanes can still gain: those
    whose model is nowhere, for a load takes no place, and those more urgent
    than a prepared batch. Looking at no others keeps a full device cheap.
    """
    books = step.books
    devices = books.devices.values()
    lanes = [lane for lane in books.ready.values() if lane.tried_epoch != books.epoch]
    has_place = any(d.prepared is None and d.is_open for d in devices)
    if not has_place:
        lanes = [lane for lane in lanes if _may_gain(step, lane)]
    if len(lanes) > 1:
        lanes.sort(key=step.urgency)
    epoch = books.epoch
    for lane in lanes:
        if books.epoch != epoch:
            epoch = books.epoch
            has_place = any(d.prepared is None and d.is_open for d in devices)
        if lane.tried_epoch != epoch and (has_place or _may_gain(step, lane)):
            _place(step, lane)


def _may_gain(step: Step, lane: Lane) -> bool:
    """Return whether a lane could gain anything although every place is taken."""
    aging_ns, now_ns = step.books.policy.aging_ns, step.now_ns
    best = lane.best_class(now_ns, aging_ns)
    is_cold = True
    for device in step.books.devices.values():
        if device.holds(lane.key.model):
            is_cold = False
            held = device.prepared
            if held is not None and held.lane.best_class(now_ns, aging_ns) > best:
                return True
    if not is_cold:
        lane.tried_epoch = step.books.epoch
    return is_cold


def _place(step: Step, lane: Lane) -> None:
    """Find a place for a lane's next batch: prepare it, load its model, or let it wait."""
    books = step.books
    lane.tried_epoch = books.epoch
    model = lane.key.model
    device = _assigned(step, lane)
    if device is None:
        options = [
            d
            for d in books.devices.values()
            if d.is_open and safe_items(step, lane, device=d) > 0
        ]
        device = _choose(step, lane, options=options)
    if device is None:
        return
    if device.holds(model):
        _prepare_or_revoke(step, lane, device=device)
        return
    resident = device.pool.residents.get(model)
    if device.is_winning(model) or resident is not None:
        return
    urgency = step.urgency(lane)
    if start_load(step, device, model=model, urgency=urgency, lane=lane) or (
        _withdraw_lesser(step, lane, device=device, urgency=urgency)
        and start_load(step, device, model=model, urgency=urgency, lane=lane)
    ):
        lane.assigned = device.spec.name
        lane.is_blocked = False
    else:
        _blocked(step, lane, device=device)


def _assigned(step: Step, lane: Lane) -> DeviceBooks | None:
    """Return the device that a lane's load was decided for, while that still makes sense."""
    device = step.books.devices.get(lane.assigned)
    if device is None or not device.is_open:
        lane.assigned = ""
        return None
    model = lane.key.model
    if device.holds(model):
        if step.books.policy.placement == "round_robin":
            return device
        lane.assigned = ""
        return None
    if device.is_winning(model):
        return device
    lane.assigned = ""
    return None


def _choose(step: Step, lane: Lane, *, options: list[DeviceBooks]) -> DeviceBooks | None:
    books = step.books
    model = lane.key.model
    if len(options) <= 1:
        return options[0] if options else None
    if books.policy.placement != "round_robin":
        holders = [d for d in options if d.holds(model)]
        free = [d for d in holders if d.prepared is None]
        idle = [d for d in free if d.running is None]
        if idle:
            return idle[0]
        if not free and any(d.is_winning(model) for d in options):
            return None
        if holders and _is_worth_waiting(step, lane, holders=holders):
            return min(free, key=lambda d: (d.busy_until_ns, d.serial)) if free else None
    want = _want(step, lane, device=options[0])
    state = MemoryState(step.now_ns, tuple(placement_state(step, d) for d in options))
    choice = POLICIES[books.policy.placement](state, want)
    if not choice.device:
        return None
    return _accept(step, lane, choice=choice)


def _is_worth_waiting(step: Step, lane: Lane, *, holders: list[DeviceBooks]) -> bool:
    """Return whether the holders work off what waits sooner than a load would end.

    All that waits in the lane counts, not only the next batch; beyond that the
    policy decides.
    """
    device = holders[0]
    profile = step.profile(lane, device)
    assert profile is not None, "a device without a profile is no candidate"
    high = lane.rules.watermarks.high
    batch_ns = profile.latency.at(min(max(1, lane.queued_items), high))
    behind = max(0, lane.queued_items - high) // high
    soonest_ns = min(_start_ns(step, d) for d in holders)
    wait_ns = soonest_ns - step.now_ns + behind * batch_ns // len(holders)
    return wait_ns <= profile.weight_bytes * 1e9 / device.spec.load_bytes_per_s


def _start_ns(step: Step, device: DeviceBooks) -> int:
    """Return when a device is expected to start what is placed on it next."""
    busy_ns = max(step.now_ns, device.busy_until_ns) if device.running else step.now_ns
    return busy_ns + (device.prepared.expected_ns if device.prepared else 0)


def _accept(step: Step, lane: Lane, *, choice: Choice) -> DeviceBooks:
    device = step.books.devices[choice.device]
    if choice.reason is Reason.IN_TURN:
        step.books.turn = device.serial + 1
    if choice.reason is not Reason.WAIT_FOR_HOLDER:
        step.decide(
            Kind.PLACEMENT,
            choice.reason,
            model=lane.key.model,
            device=choice.device,
            numbers=choice.terms,
        )
    return device


def _want(step: Step, lane: Lane, *, device: DeviceBooks) -> Want:
    profile = step.profile(lane, device)
    assert profile is not None, "a device without a profile is no candidate"
    items = max(1, min(lane.queued_items, lane.rules.watermarks.high))
    return Want(
        model=lane.key.model,
        weight_bytes=profile.weight_bytes,
        lease_bytes=profile.workspace_bytes(items),
        priority_class=step.urgency(lane)[0],
        service_ns=profile.latency.at(items),
        turn=step.books.turn,
        weights=step.books.policy.weights,
    )


def _prepare_or_revoke(step: Step, lane: Lane, *, device: DeviceBooks) -> None:
    held = device.prepared
    urgency = step.urgency(lane)
    if held is not None:
        mine, theirs = urgency[0], step.urgency(held.lane)[0]
        if mine >= theirs or held.lane.revocations >= MAX_REVOCATIONS or held.lease is None:
            return
        _preempt(step, lane, device=device, mine=mine)
    if not prepare(step, lane, device=device, urgency=urgency):
        _blocked(step, lane, device=device)


def _withdraw_lesser(step: Step, lane: Lane, *, device: DeviceBooks, urgency: Urgency) -> bool:
    """Take the place of a prepared batch of a less urgent class: its bytes may be enough."""
    held = device.prepared
    if held is None or held.lease is None or held.lane.revocations >= MAX_REVOCATIONS:
        return False
    if held.lane.model is lane.model or step.urgency(held.lane)[0] <= urgency[0]:
        return False
    _preempt(step, lane, device=device, mine=urgency[0])
    return True


def _preempt(step: Step, lane: Lane, *, device: DeviceBooks, mine: int) -> None:
    held = device.prepared
    assert held is not None, "only a prepared batch loses its place"
    held.lane.revocations += 1
    theirs = step.urgency(held.lane)[0]
    step.decide(
        Kind.RETRY,
        Reason.PREEMPTED,
        model=held.lane.key.model,
        device=device.spec.name,
        subject=held.id,
        numbers=(("class", theirs), ("by", lane.key.model), ("by_class", mine)),
    )
    withdraw(step, device)


def _blocked(step: Step, lane: Lane, *, device: DeviceBooks) -> None:
    """Say once per wait that a lane waits for memory, and whether a hole was the problem."""
    if lane.is_blocked:
        return
    lane.is_blocked = True
    profile = step.profile(lane, device)
    assert profile is not None, "placed only where there is a profile"
    wanted = profile.weight_bytes
    if device.holds(lane.key.model):
        wanted = profile.workspace_bytes(1)
    free_bytes = device.pool.free_bytes
    reason = Reason.NO_HOLE if free_bytes >= wanted else Reason.NO_ROOM
    step.decide(
        Kind.ROOM,
        reason,
        model=lane.key.model,
        device=device.spec.name,
        numbers=(("wanted", wanted), ("free", free_bytes)),
    )
