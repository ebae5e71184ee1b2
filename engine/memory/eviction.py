"""Eviction: whose weights go first when bytes are wanted, by the name of a policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Candidate:
    """Show an idle resident that may be evicted, moved, or both.

    Attributes:
        size_bytes: Size of its block.
        has_queue: Requests wait for its model; it would have to come back soon.
        serial: Breaks ties; no two residents share one.
        priority_class: The more urgent of its model's class and its queued requests'.
        price_ns: Expected time of the loads that evicting it will cost; see `Demand`.
        may_leave: It may be evicted for the sake of who asks.
        may_move: Its block may be moved.
    """

    model: str
    size_bytes: int
    offset: int
    last_used_ns: int
    has_queue: bool
    serial: int
    priority_class: int = 5
    price_ns: float = 0.0
    may_leave: bool = True
    may_move: bool = False


Order = Callable[[Iterable[Candidate]], list[Candidate]]


@dataclass(frozen=True, slots=True)
class Eviction:
    """Be a policy: an order of eviction, and whether prices count for more than that order.

    Attributes:
        is_priced: Among ranges that could be opened the cheapest is taken; else
            the first that the order opens.
    """

    order: Order
    is_priced: bool


def lru(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the candidates in eviction order, the least recently used first.

    Those for which nobody waits go before all others.
    """
    return sorted(candidates, key=lambda c: (c.has_queue, c.last_used_ns, c.serial))


def priority_lru(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the candidates in eviction order, the least urgent class first, in it LRU."""
    return sorted(
        candidates,
        key=lambda c: (c.has_queue, -c.priority_class, c.last_used_ns, c.serial),
    )


def cost_aware(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the candidates in eviction order, the cheapest per byte won first.

    A large model that nobody asked for lately goes before a small one that is
    asked for often. After GreedyDual-Size with frequency, with a demand that
    fades in place of its inflation value.

    Source: Cherkasova, Improving WWW proxies performance with GDSF caching, 1998.
    """
    return sorted(
        candidates,
        key=lambda c: (c.has_queue, c.price_ns / c.size_bytes, c.last_used_ns, c.serial),
    )


EVICTIONS: Mapping[str, Eviction] = {
    "lru": Eviction(lru, is_priced=False),
    "cost_aware": Eviction(cost_aware, is_priced=True),
    "priority_lru": Eviction(priority_lru, is_priced=False),
}


def choose(
    candidates: Sequence[Candidate], needed_bytes: int, *, is_priced: bool = False
) -> list[Candidate] | None:
    """Return whom to evict for a number of bytes, wherever they lie.

    In order until the bytes are enough; then those are spared without whom
    they are enough still: from the last one back, or the dearest first.

    Args:
        candidates: In eviction order.

    Returns:
        Victims in eviction order. None: all together do not have the bytes.
    """
    victims: list[Candidate] = []
    won = 0
    for candidate in candidates:
        if won >= needed_bytes:
            break
        victims.append(candidate)
        won += candidate.size_bytes
    if won < needed_bytes:
        return None
    spared: set[str] = set()
    doubtful = reversed(victims)
    if is_priced:
        doubtful = iter(sorted(victims, key=lambda c: (-c.price_ns, c.serial)))
    for victim in doubtful:
        if won - victim.size_bytes >= needed_bytes:
            won -= victim.size_bytes
            spared.add(victim.model)
    return [victim for victim in victims if victim.model not in spared]


def plan_budget(candidates: Sequence[Candidate], needed_bytes: int) -> tuple[str, ...] | None:
    """Return the models to evict for bytes without an address; see `choose`."""
    victims = choose(candidates, needed_bytes)
    return None if victims is None else tuple(victim.model for victim in victims)
