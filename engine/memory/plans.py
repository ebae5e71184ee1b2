"""Plans: the cheapest way to the bytes of weights or of a lease on one device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.memory.compaction import Budget, plan_compaction
from engine.memory.device_pool import DevicePool
from engine.memory.eviction import Candidate, Eviction, choose
from engine.memory.holdings import ALIGNMENT, Conversion, Plan
from engine.memory.windows import plan_window
from engine.units import align_up


@dataclass(frozen=True, slots=True)
class Ways:
    """Say by which means room may be made.

    Attributes:
        eviction: Policy by which victims are chosen; None: nobody is evicted.
        budget: Price and limit of moves; None: nothing is moved.
    """

    eviction: Eviction | None
    budget: Budget | None = None


def plan_weights(
    pool: DevicePool, size_bytes: int, *, candidates: Sequence[Candidate], ways: Ways
) -> Plan | None:
    """Return the cheapest way to a hole for weights; None if there is none.

    Args:
        candidates: Idle residents.
    """
    size_bytes = align_up(size_bytes, ALIGNMENT)
    if pool.has_room(size_bytes):
        return Plan()
    plan = _plan_range(pool, size_bytes, candidates=candidates, ways=ways)
    if plan is None:
        return None
    # A hole is not enough where leases are a budget of the same bytes.
    short = size_bytes - pool.weight_room_bytes
    short -= sum(c.size_bytes for c in candidates if c.model in plan.victims)
    if short <= 0:
        return plan
    kept = {*plan.victims, *(move.model for move in plan.moves)}
    rest = [c for c in candidates if c.model not in kept]
    more = _plan_bytes(rest, short, ways=ways)
    if more is None:
        return None
    price = plan.price_ns + more.price_ns
    return replace(plan, victims=(*plan.victims, *more.victims), price_ns=price)


def plan_lease(
    pool: DevicePool, size_bytes: int, *, candidates: Sequence[Candidate], ways: Ways
) -> Plan | None:
    """Return the cheapest way to the bytes of a lease; None if there is none."""
    if size_bytes <= pool.lease_room_bytes:
        return Plan()
    if pool.spec.workspace_bytes is not None:
        return None
    if not pool.spec.addressed:
        return _plan_bytes(candidates, size_bytes - pool.lease_room_bytes, ways=ways)
    size_bytes = align_up(size_bytes, ALIGNMENT)
    return _plan_range(pool, size_bytes, candidates=candidates, ways=ways)


def plan_conversion(
    pool: DevicePool, size_bytes: int, *, conversions: Sequence[Conversion], for_weights: bool
) -> Plan | None:
    """Return the first conversion that makes room, or the first few where bytes are enough.

    Args:
        conversions: What may become smaller in place, in the order of preference.
        for_weights: They need a hole; leases may be content with bytes.
    """
    size_bytes = align_up(size_bytes, ALIGNMENT)
    if not for_weights and not pool.spec.addressed:
        return _plan_smaller(pool, size_bytes, conversions=conversions)
    holes = dict(pool.arena.holes())
    for conversion in conversions:
        won = conversion.size_bytes - conversion.new_size_bytes
        behind = conversion.offset + conversion.size_bytes
        beside = holes.get(behind, 0)
        if won + beside < size_bytes or won + pool.weight_room_bytes < size_bytes:
            continue
        window = (behind, behind + size_bytes - won) if won < size_bytes else None
        return Plan(window=window, conversions=(conversion,))
    return None


def _plan_smaller(
    pool: DevicePool, size_bytes: int, *, conversions: Sequence[Conversion]
) -> Plan | None:
    if pool.spec.workspace_bytes is not None:
        return None
    short, chosen = size_bytes - pool.lease_room_bytes, []
    for conversion in conversions:
        chosen.append(conversion)
        short -= conversion.size_bytes - conversion.new_size_bytes
        if short <= 0:
            return Plan(conversions=tuple(chosen))
    return None


def _plan_bytes(candidates: Sequence[Candidate], needed: int, *, ways: Ways) -> Plan | None:
    """Return whom to evict for bytes wherever they lie; moves win no bytes."""
    if ways.eviction is None:
        return None
    order = ways.eviction.order(c for c in candidates if c.may_leave)
    victims = choose(order, needed, is_priced=ways.eviction.is_priced)
    if victims is None:
        return None
    price = round(sum(victim.price_ns for victim in victims))
    return Plan(tuple(victim.model for victim in victims), price_ns=price)


def _plan_range(
    pool: DevicePool, size_bytes: int, *, candidates: Sequence[Candidate], ways: Ways
) -> Plan | None:
    """Return the cheaper of two ways to a range: by evictions alone, or with moves."""
    arena, eviction = pool.arena, ways.eviction
    evicting: Plan | None = None
    order = list(candidates)
    if eviction is not None:
        order = eviction.order(order)
        window = plan_window(
            arena.holes(),
            [c for c in order if c.may_leave],
            size_bytes=size_bytes,
            fence_bytes=arena.fence_bytes,
            is_priced=eviction.is_priced,
        )
        if window is not None:
            span = (window.start, window.end)
            evicting = Plan(window.victims, span, price_ns=round(window.price_ns))
    else:
        order = [replace(c, may_leave=False) for c in order]
    if ways.budget is None:
        return evicting
    moving = plan_compaction(
        arena.holes(),
        order,
        size_bytes=size_bytes,
        budget=ways.budget,
        fence_bytes=arena.fence_bytes,
    )
    if moving is None or (evicting is not None and evicting.price_ns <= moving.price_ns):
        return evicting
    return replace(moving, instead_ns=evicting.price_ns if evicting else 0)
