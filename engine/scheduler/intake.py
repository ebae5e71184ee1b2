"""Intake: requests come in, are refused, cancelled or expire; lanes wake up in time."""

from __future__ import annotations

from heapq import heappop, heappush

from engine.batching.admission import Refusal, refusal
from engine.batching.lanes import Lane, ModelBooks
from engine.batching.watermarks import due_ns, wants_batch
from engine.decisions import Kind, Reason
from engine.effects import RejectRequests
from engine.events import CancelRequested, Submitted
from engine.request import Request, RequestState, RequestStep
from engine.scheduler.limits import load_ns, safe_items
from engine.scheduler.step import Step
from engine.spec import LaneKey

QUOTA, POOL, WORKSPACE = "model's quota", "pool of the largest device", "room for leases"
REMEDIES = {
    QUOTA: "raise quota_mib",
    POOL: "use a larger pool",
    WORKSPACE: "raise the pool or its share for workspaces",
}


def submitted(step: Step, event: Submitted) -> None:
    """Queue a request, or refuse it at once.

    This runs once per request: what can wait for the batch is not done here.
    """
    request = event.request
    books = step.books
    request.arrival_ns = step.now_ns
    lane = books.lanes.get(request.lane) or open_lane(step, request.lane)
    model = lane.model
    model.counters.submitted += 1
    policy = books.policy
    if (
        model.queued_items + request.items > policy.queue_items
        or books.queued_bytes + request.size_bytes > policy.queue_bytes
        or not lane.is_servable
    ) and not request.internal:
        found = refusal(
            request,
            policy,
            queued_items=model.queued_items,
            queued_bytes=books.queued_bytes,
        )
        _refuse(step, model, request=request, why=found or _unservable(step, lane))
        return
    books.requests[request.id] = request
    if not model.queued_items:
        model.virtual_ns = max(model.virtual_ns, books.virtual_ns)
    model.queued_items += request.items
    books.queued_bytes += request.size_bytes
    lane.add(request)
    if request.deadline_ns is not None:
        heappush(books.deadlines, (request.deadline_ns, request.id))
    if lane.queued_items <= lane.claimed_items:
        if lane.waits_patiently:
            _joined(step, lane, request=request)
    elif lane.serial not in books.ready:
        refresh(step, lane)
    elif request.priority_class < lane.rules.priority_class:
        lane.tried_epoch = -1
        step.is_dirty = True


def _joined(step: Step, lane: Lane, *, request: Request) -> None:
    """Let a request join a patient batch, which may be full or in a hurry now."""
    step.is_dirty = True
    if request.deadline_ns is not None:
        latest_ns = max(step.now_ns, request.deadline_ns - lane.expected_ns)
        heappush(step.books.wakes, (latest_ns, lane.serial))


def refresh(step: Step, lane: Lane) -> None:
    """Decide anew whether a lane wants a batch; if not yet, set its wake-up."""
    books = step.books
    lead_ns = load_ns(step, lane)
    if wants_batch(lane, step.now_ns, load_ns=lead_ns):
        if lane.serial not in books.ready:
            books.ready[lane.serial] = lane
            lane.tried_epoch = -1
            step.is_dirty = True
        return
    books.ready.pop(lane.serial, None)
    has_to_wake = not lane.claimed_items or lane.waits_patiently
    if lane.queued_items and not lane.armed_ns and has_to_wake:
        due = due_ns(lane, lead_ns)
        if due is not None and due > step.now_ns:
            lane.armed_ns = due
            heappush(books.wakes, (due, lane.serial))


def open_lane(step: Step, key: LaneKey) -> Lane:
    """Make the lane of a model, item shape and dtype that nobody asked for before."""
    books = step.books
    model = books.models.get(key.model)
    if model is None:
        model = open_model(step, key.model)
    lane = Lane(key, len(books.lane_list), model)
    lane.follow_rules()
    books.lanes[key] = lane
    books.lane_list.append(lane)
    model.lanes.append(lane)
    judge(step, lane)
    return lane


def judge(step: Step, lane: Lane) -> None:
    """Note whether any device could ever run one item of a lane."""
    devices = step.books.devices.values()
    lane.is_servable = any(
        not d.is_lost and safe_items(step, lane, device=d) > 0 for d in devices
    )


def open_model(step: Step, name: str) -> ModelBooks:
    """Open a model's books at the present virtual time: it owes and is owed nothing."""
    books = step.books
    model = ModelBooks(name, len(books.models), books.policy.rules(name))
    model.virtual_ns = books.virtual_ns
    books.models[name] = model
    return model


def cancel_requested(step: Step, event: CancelRequested) -> None:
    """Drop a request wherever it is; a running batch goes on without its result."""
    request = step.books.requests.get(event.request_id)
    if request is None:
        return
    step.leave_queue(request)
    step.reject(
        request,
        RequestStep.CANCEL,
        reason=Reason.COMMAND,
        message=f"request {request.id} of {request.lane.model} was cancelled by its caller",
    )
    step.is_dirty = True


def time_passed(step: Step) -> None:
    """Let lanes become due and requests expire."""
    books, now_ns = step.books, step.now_ns
    books.wake_ns = 0
    while books.deadlines and books.deadlines[0][0] <= now_ns:
        request = books.requests.get(heappop(books.deadlines)[1])
        if request is not None and request.state is RequestState.WAITING:
            _expire(step, request)
    while books.wakes and books.wakes[0][0] <= now_ns:
        lane = books.lane_list[heappop(books.wakes)[1]]
        lane.armed_ns = 0
        step.is_dirty |= lane.claimed_items > 0
        if 0 < lane.room_wake_ns <= now_ns:
            lane.room_wake_ns, lane.tried_epoch = 0, -1
            step.is_dirty = True
        refresh(step, lane)


def _expire(step: Step, request: Request) -> None:
    deadline_ns = request.deadline_ns
    assert deadline_ns is not None, "only a request with a deadline expires"
    waited_ms = (step.now_ns - request.arrival_ns) / 1e6
    step.leave_queue(request)
    model = request.lane.model
    message = f"{model}: waited {waited_ms:.1f} ms, beyond its deadline; send less or later"
    step.reject(request, RequestStep.EXPIRE, reason=Reason.DEADLINE, message=message)
    step.decide(Kind.EXPIRE, Reason.DEADLINE, model=model, subject=request.id)
    step.is_dirty = True


def _unservable(step: Step, lane: Lane) -> Refusal:
    devices = step.books.devices.values()
    known = [d for d in devices if step.profile(lane, d) is not None and not d.is_lost]
    if not known:
        return Refusal(Reason.UNKNOWN_MODEL, "models", lane.serial, 0)
    needed, leased, pool, workspace = 0, 0, 0, 0
    for device in known:
        profile = step.profile(lane, device)
        assert profile is not None, "filtered above"
        leased = profile.workspace_bytes(1)
        needed = profile.weight_bytes + leased
        pool = max(pool, device.pool.pool_bytes)
        workspace = max(workspace, device.pool.max_lease_bytes(profile.weight_bytes))
    quota = lane.rules.quota_bytes
    if quota is not None and quota < min(needed, pool):
        return Refusal(Reason.CANNOT_FIT, QUOTA, needed, quota)
    if pool < needed:
        return Refusal(Reason.CANNOT_FIT, POOL, needed, pool)
    return Refusal(Reason.CANNOT_FIT, WORKSPACE, leased, workspace)


def _refuse(step: Step, model: ModelBooks, *, request: Request, why: Refusal) -> None:
    request.step(RequestStep.REFUSE)
    model.counters.refused += 1
    if not model.is_refusing:
        model.is_refusing = True
        numbers = (("limit", why.limit), ("wanted", why.wanted), ("found", why.found))
        step.decide(Kind.REFUSE, why.reason, model=model.name, numbers=numbers)
    retry_ns = 0
    if why.reason in (Reason.QUEUE_ITEMS, Reason.QUEUE_BYTES):
        retry_ns = max(1_000_000, model.service.percentile_ns(0.5))
    if why.limit in REMEDIES:
        message = (
            f"{model.name}: the {why.limit} has {why.found} B, the model with a batch of one "
            f"needs {why.wanted} B; {REMEDIES[why.limit]}"
        )
    else:
        message = (
            f"{model.name}: {why.limit} allows {why.found} more, the request has {why.wanted}; "
            "retry later or raise the limit"
        )
    if why.reason is Reason.UNKNOWN_MODEL:
        message = f"{model.name}: no device knows it; add the model first"
    step.effects.append(
        RejectRequests(
            (request.id,),
            request.state.value,
            why.reason,
            message,
            why.limit,
            why.wanted,
            why.found,
            retry_ns,
        )
    )
