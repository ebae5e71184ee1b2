"""Candidates: which idle residents may be evicted, moved or converted, and for whom."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.memory.eviction import Candidate
from engine.memory.holdings import ALIGNMENT, Conversion, Resident
from engine.rules import PRECISIONS
from engine.scheduler.books import DeviceBooks
from engine.scheduler.step import BY_HAND, LAST, Step, Urgency
from engine.units import align_up


@dataclass(slots=True)
class Candidates:
    """Hold the candidates for somebody's sake.

    Attributes:
        next_ns: When the first of those who may not leave yet may; 0: never by waiting.
    """

    all: list[Candidate] = field(default_factory=list)
    next_ns: int = 0

    def later(self, at_ns: int) -> None:
        """Note that somebody may leave from that instant on."""
        if not self.next_ns or at_ns < self.next_ns:
            self.next_ns = at_ns


def candidates(step: Step, device: DeviceBooks, *, asking: str, urgency: Urgency) -> Candidates:
    """Return the idle residents of a device, and who of them may leave for a model's sake.

    Never one in use, or on its way in or out, or pinned. One whose own
    requests wait may leave only if those are less urgent than the asker's:
    the order of all requests is total, so that two models never evict each
    other in turns without a request being served. Else a less urgent asker
    has to wait until it was idle for long enough, and everybody but a more
    urgent one until it was there for long enough.

    Args:
        asking: Model that must not be a victim of its own; "" for none.
        urgency: The asker's place in the order of all.
    """
    found = Candidates()
    for resident in device.pool.residents.values():
        if not resident.is_idle or resident.model == asking:
            continue
        may_leave, level, has_queue = _may_leave(step, resident, urgency=urgency, found=found)
        found.all.append(
            Candidate(
                resident.model,
                resident.size_bytes,
                resident.offset,
                resident.last_used_ns,
                has_queue,
                resident.serial,
                priority_class=level,
                price_ns=price_ns(step, device, resident=resident),
                may_leave=may_leave,
                may_move=resident.is_movable,
            )
        )
    return found


def price_ns(step: Step, device: DeviceBooks, *, resident: Resident) -> float:
    """Return what evicting a resident is expected to cost in loads; see `Demand`."""
    rules = step.books.policy.memory
    demand = step.books.demands.get(resident.model)
    if demand is None:
        return 0.0
    load = rules.load_overhead_ns + resident.full_bytes * 1e9 / device.spec.load_bytes_per_s
    return demand.at(step.now_ns, rules.demand_window_ns) * load


def _may_leave(
    step: Step, resident: Resident, *, urgency: Urgency, found: Candidates
) -> tuple[bool, int, bool]:
    """Return whether it may, its class, and whether requests wait for it."""
    model = step.books.models[resident.model]
    has_queue = model.queued_items > 0 or any(lane.retries for lane in model.lanes)
    own = step.model_urgency(model.name) if has_queue else LAST
    level = min(model.rules.priority_class, own[0])
    if model.rules.pinned or (has_queue and own <= urgency):
        return False, level, has_queue
    if urgency in (BY_HAND, LAST):
        return True, level, has_queue
    memory, now_ns = step.books.policy.memory, step.now_ns
    safe_ns = 0
    if urgency[0] > level:
        safe_ns = resident.last_used_ns + memory.protect_idle_ns
    if urgency[0] >= level:
        safe_ns = max(safe_ns, resident.loaded_ns + memory.min_residence_ns)
    if safe_ns > now_ns:
        found.later(safe_ns)
        return False, level, has_queue
    return True, level, has_queue


def conversions(step: Step, device: DeviceBooks, *, order: list[Candidate]) -> list[Conversion]:
    """Return what idle residents could be converted to, in that order, one step down each.

    Only to a precision that the policy allows, whose size is known, that
    makes them smaller, and for which the scratch of a conversion is free.
    """
    found: list[Conversion] = []
    for candidate in order:
        if candidate.may_leave:
            resident = device.pool.residents[candidate.model]
            found += smaller(step, device, resident=resident)
    return found


def smaller(step: Step, device: DeviceBooks, *, resident: Resident) -> list[Conversion]:
    """Return a resident's conversion to the next lower precision that is allowed, if any."""
    model = step.books.models[resident.model]
    lower = PRECISIONS[PRECISIONS.index(resident.precision) + 1 :]
    for precision in lower:
        size = align_up(model.sizes.get(precision, 0), ALIGNMENT)
        if (
            precision not in model.rules.precisions
            or precision in model.unconvertible
            or not 0 < size < resident.size_bytes
            or scratch_bytes(step, device, model=model.name, precision=precision)
            > device.pool.lease_room_bytes
        ):
            continue
        at = resident.offset
        return [Conversion(model.name, precision, at, at, resident.size_bytes, size)]
    return []


def scratch_bytes(step: Step, device: DeviceBooks, *, model: str, precision: str) -> int:
    """Return the workspace of a conversion: the largest part of the model at once.

    That is what a batch at the lower precision needs beside its items.
    """
    for lane in step.books.models[model].lanes:
        profile = step.profile_at(lane, device, precision=precision)
        if profile is not None:
            return profile.workspace_fixed_bytes
    return 0
