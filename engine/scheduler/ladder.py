"""Ladder: the ways to the bytes of a load or a lease, tried in the policy's order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappush

from engine.batching.lanes import Lane
from engine.decisions import Kind, Number, Reason
from engine.memory.compaction import Budget
from engine.memory.eviction import EVICTIONS
from engine.memory.holdings import Plan
from engine.memory.plans import Ways, plan_conversion, plan_lease, plan_weights
from engine.scheduler.books import DeviceBooks
from engine.scheduler.candidates import Candidates, candidates, conversions
from engine.scheduler.claims import debt_bytes
from engine.scheduler.step import Step, Urgency
from engine.units import NS_PER_S


@dataclass(frozen=True, slots=True)
class Need:
    """Say for what room is wanted.

    Attributes:
        size_bytes: Of the weights, or of the lease.
        for_weights: They need a hole and go to the low end; else it is a lease.
        smaller_bytes: Lease of a smaller batch that fits now and is large enough; 0: none.
        lane: Whose wait it is; None for an operator's order.
    """

    model: str
    urgency: Urgency
    size_bytes: int
    for_weights: bool
    smaller_bytes: int = 0
    lane: Lane | None = None

    @property
    def is_first(self) -> bool:
        """Return whether nothing was tried yet in this wait."""
        return self.lane is None or not self.lane.is_blocked


@dataclass(frozen=True, slots=True)
class Found:
    """Hold how room can be had, and for how many bytes."""

    plan: Plan
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """Hold what every way is tried with."""

    step: Step
    device: DeviceBooks
    need: Need
    crowd: Candidates


def climb(step: Step, device: DeviceBooks, *, need: Need) -> Found | None:
    """Try the policy's ways in order; return the first that leads to the bytes.

    The last one is to wait: then who waits is woken when somebody who is
    protected now may leave, or the budget of moves is paid off.
    """
    pool, memory = device.pool, step.books.policy.memory
    largest = pool.arena.largest_hole_bytes
    if need.is_first and pool.free_bytes >= need.size_bytes > largest:
        step.books.no_hole_events += 1
    crowd = candidates(step, device, asking=need.model, urgency=need.urgency)
    for name in memory.ladder:
        if need.for_weights and name == "smaller_batch":
            continue
        found = _RUNGS[name](Attempt(step, device, need, crowd))
        if found is not None or need.is_first:
            record(step, device, need=need, rung=name, found=found)
        if found is not None:
            return found
    if need.lane is not None:
        _wake_later(step, device, lane=need.lane, crowd=crowd)
    return None


def _smaller(attempt: Attempt) -> Found | None:
    size = attempt.need.smaller_bytes
    return Found(Plan(), size) if size else None


def _evict(attempt: Attempt) -> Found | None:
    """Plan evictions; moves take part where they save more than they cost."""
    memory = attempt.step.books.policy.memory
    ladder = memory.ladder
    budget = None
    if "compact" in ladder and ladder.index("compact") > ladder.index("evict"):
        budget = _budget(attempt.step, attempt.device)
    return _planned(attempt, Ways(EVICTIONS[memory.eviction], budget))


def _compact(attempt: Attempt) -> Found | None:
    budget = _budget(attempt.step, attempt.device)
    return None if budget is None else _planned(attempt, Ways(None, budget))


def _convert(attempt: Attempt) -> Found | None:
    step, device, need = attempt.step, attempt.device, attempt.need
    order = EVICTIONS[step.books.policy.memory.eviction].order(attempt.crowd.all)
    found = conversions(step, device, order=order)
    if not found:
        return None
    plan = plan_conversion(
        device.pool, need.size_bytes, conversions=found, for_weights=need.for_weights
    )
    return None if plan is None else Found(plan, need.size_bytes)


def _wait(attempt: Attempt) -> Found | None:
    return None


_RUNGS: dict[str, Callable[[Attempt], Found | None]] = {
    "smaller_batch": _smaller,
    "evict": _evict,
    "convert": _convert,
    "compact": _compact,
    "wait": _wait,
}


def _planned(attempt: Attempt, ways: Ways) -> Found | None:
    need, pool = attempt.need, attempt.device.pool
    make = plan_weights if need.for_weights else plan_lease
    plan = make(pool, need.size_bytes, candidates=attempt.crowd.all, ways=ways)
    return None if plan is None else Found(plan, need.size_bytes)


def _budget(step: Step, device: DeviceBooks) -> Budget | None:
    """Return what may be moved now; None: nothing.

    An account without debt may be overdrawn, or no block larger than a
    second's budget could ever move.
    """
    rate = step.books.policy.memory.move_bytes_per_s
    if not rate:
        return None
    debt = debt_bytes(step, device)
    left = device.pool.arena.size_bytes if not debt else max(0, rate - debt)
    return Budget(1e9 / device.spec.move_bytes_per_s, left)


def record(
    step: Step, device: DeviceBooks, *, need: Need, rung: str, found: Found | None
) -> None:
    """Say what came of a way to make room, with the state of the memory before."""
    pool = device.pool
    numbers: list[tuple[str, Number]] = [
        ("wanted", need.size_bytes),
        ("free", pool.free_bytes),
        ("hole", pool.arena.largest_hole_bytes),
        ("for", "weights" if need.for_weights else "lease"),
    ]
    reason = Reason(rung)
    if found is None:
        numbers.append(("outcome", "waits" if rung == "wait" else "not enough"))
    else:
        plan = found.plan
        numbers += [("outcome", "found"), ("bytes", found.size_bytes)]
        if plan.moves:
            reason = Reason.COMPACT
            numbers += [("moves", len(plan.moves)), ("moved", plan.moved_bytes)]
            numbers.append(("instead_ms", plan.instead_ns // 1_000_000))
        if plan.victims:
            numbers.append(("victims", " ".join(plan.victims)))
        numbers.append(("price_ms", plan.price_ns // 1_000_000))
    step.decide(
        Kind.ROOM, reason, model=need.model, device=device.spec.name, numbers=tuple(numbers)
    )


def _next_class_ns(step: Step, lane: Lane) -> int:
    """Return when aging makes a lane's next request more urgent; 0: it cannot be more so."""
    aging_ns = step.books.policy.aging_ns
    head = lane.head(step.now_ns, aging_ns)
    if head is None or not step.urgency(lane)[0]:
        return 0
    steps = (step.now_ns - head.arrival_ns) // aging_ns + 1
    return head.arrival_ns + steps * aging_ns


def _wake_later(step: Step, device: DeviceBooks, *, lane: Lane, crowd: Candidates) -> None:
    at_ns = crowd.next_ns
    rate = step.books.policy.memory.move_bytes_per_s
    debt = debt_bytes(step, device)
    if debt and rate:
        paid_ns = step.now_ns + -(-debt * NS_PER_S // rate)
        at_ns = min(at_ns or paid_ns, paid_ns)
    if crowd.next_ns:
        at_ns = min(at_ns, _next_class_ns(step, lane) or at_ns)
    if at_ns and (not lane.room_wake_ns or at_ns < lane.room_wake_ns):
        lane.room_wake_ns = at_ns
        heappush(step.books.wakes, (at_ns, lane.serial))
