"""Working set: how many loads more or less memory would have caused, from recent use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

NS_PER_MINUTE = 60_000_000_000


class Access(NamedTuple):
    """Say that a batch of a model ran."""

    at_ns: int
    model: str


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Hold what an LRU pool of whole models of one size would have loaded.

    The first use of a model in the window is left out: no memory avoids it.
    """

    capacity_bytes: int
    loads: int
    loaded_bytes: int
    loads_per_minute: float


@dataclass(frozen=True, slots=True)
class Advice:
    """Hold the numbers of a sentence on more or less memory.

    Attributes:
        spare_bytes: What could be given back without one load more.
    """

    now_per_minute: float
    then_per_minute: float
    extra_bytes: int
    spare_bytes: int


def miss_curve(
    accesses: Sequence[Access],
    weight_bytes: Mapping[str, int],
    *,
    capacities: Sequence[int],
) -> tuple[CurvePoint, ...]:
    """Return how often models would have been loaded in pools of these sizes.

    One pass: for every use the bytes of the models used since its last use,
    its own included, are the size that it would have needed to be there
    still. O(uses * models).

    Args:
        accesses: In order of time, over a window of more than no time.
        capacities: Bytes that weights may take, each more than 0.

    Source: Mattson et al., Evaluation techniques for storage hierarchies, 1970.
    """
    recent: list[str] = []
    needed: list[tuple[int, int]] = []
    for _, model in accesses:
        size = weight_bytes.get(model, 0)
        if model in recent:
            index = recent.index(model)
            distance = sum(weight_bytes.get(name, 0) for name in recent[:index]) + size
            needed.append((distance, size))
            del recent[index]
        recent.insert(0, model)
    span = accesses[-1].at_ns - accesses[0].at_ns if accesses else 0
    return tuple(_point(capacity, needed, span_ns=span) for capacity in capacities)


def _point(capacity: int, needed: Sequence[tuple[int, int]], *, span_ns: int) -> CurvePoint:
    missed = [size for distance, size in needed if distance > capacity]
    per_minute = len(missed) * NS_PER_MINUTE / span_ns if span_ns > 0 else 0.0
    return CurvePoint(capacity, len(missed), sum(missed), per_minute)


def advise(
    accesses: Sequence[Access],
    weight_bytes: Mapping[str, int],
    *,
    now_bytes: int,
    extra_bytes: int,
) -> Advice | None:
    """Return what more memory would bring, and how much could go; None: nothing was used twice.

    Args:
        now_bytes: What weights may take now.
    """
    if len({access.model for access in accesses}) == len(accesses):
        return None
    used = sorted({weight_bytes.get(access.model, 0) for access in accesses})
    steps = _steps(accesses, weight_bytes)
    curve = miss_curve(
        accesses, weight_bytes, capacities=[now_bytes, now_bytes + extra_bytes, *steps]
    )
    now, then = curve[0], curve[1]
    enough = [p.capacity_bytes for p in curve[2:] if p.loads <= now.loads]
    least = max(min([*enough, now_bytes]), used[-1])
    return Advice(
        now.loads_per_minute,
        then.loads_per_minute,
        extra_bytes,
        max(0, now_bytes - least),
    )


def _steps(accesses: Sequence[Access], weight_bytes: Mapping[str, int]) -> list[int]:
    """Return sizes at which the curve may step: sums of the models, largest first and last."""
    sizes = sorted(weight_bytes.get(name, 0) for name in {a.model for a in accesses})
    sums: set[int] = set()
    for order in (sizes, sizes[::-1]):
        total = 0
        for size in order:
            total += size
            sums.add(total)
    whole = sum(sizes)
    sums |= {whole * share // 32 for share in range(1, 33)}
    return sorted(size for size in sums if size)
