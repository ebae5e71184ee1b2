"""Pool: reloads under pressure, this pool against the allocators that everybody knows."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

from benchmarks.measure import report
from benchmarks.pool_baselines import (
    BuddyArena,
    ListArena,
    LruPool,
    best_fit,
    first_fit,
    two_ended,
)
from benchmarks.scenarios import pool_trace
from engine.errors import OutOfMemoryError
from engine.memory.arena import Arena
from engine.memory.pool import Pool
from engine.units import GIB, MIB

MOVE_BYTES_PER_S = 120e9
LOAD_BYTES_PER_S = 12.3e9
BLOCKS = (100, 10_000)


@dataclass(frozen=True, slots=True)
class Row:
    """Hold what one policy did to one stream of requests.

    Attributes:
        copy_s: Moves at 120 GB/s and reloads at 12.3 GB/s, one after another.
    """

    reloads_per_1000: float
    reloaded_gib: float
    no_hole_events: float
    oom: float
    moved_gib: float
    copy_s: float


BASELINES: dict[str, Callable[[list[int]], LruPool]] = {
    "buddy": lambda w: LruPool(BuddyArena(pool_trace.ARENA_BYTES), w),
    "first_fit": lambda w: LruPool(ListArena(pool_trace.ARENA_BYTES, first_fit), w),
    "best_fit": lambda w: LruPool(ListArena(pool_trace.ARENA_BYTES, best_fit), w),
    "two_ended": lambda w: LruPool(ListArena(pool_trace.ARENA_BYTES, two_ended), w),
    "two_ended_compaction": lambda w: LruPool(
        ListArena(pool_trace.ARENA_BYTES, two_ended), w, compacts=True
    ),
}


def run_baseline(name: str, seed: int) -> Row:
    """Serve the stream with a baseline."""
    pool = BASELINES[name](pool_trace.models(seed))
    out: list[tuple[int, int, int]] = []
    oom = 0
    for index, (model, workspace, hold) in enumerate(pool_trace.requests(seed)):
        for _, owner, offset in [entry for entry in out if entry[0] < index]:
            pool.end(owner, offset)
        out = [entry for entry in out if entry[0] >= index]
        offset_or_none = pool.lease(model, workspace) if pool.ensure(model) else None
        if offset_or_none is None:
            oom += 1
        else:
            out.append((index + hold, model, offset_or_none))
    return _row(
        pool.reloads,
        pool.reloaded_bytes,
        oom=oom,
        gaps=pool.no_hole_events,
        moved=pool.moved_bytes,
    )


def run_this(seed: int) -> Row:
    """Serve the stream with the pool of the engine, decisions made as requests come."""
    weights = pool_trace.models(seed)
    pool = Pool(
        pool_trace.ARENA_BYTES,
        eviction="cost_aware",
        on_move=_moved,
    )
    out: list[tuple[int, str, int]] = []
    oom = 0
    for index, (model, workspace, hold) in enumerate(pool_trace.requests(seed)):
        for _, owner, offset in [entry for entry in out if entry[0] < index]:
            pool.end(offset)
            pool.done(owner)
        out = [entry for entry in out if entry[0] >= index]
        owner = str(model)
        try:
            pool.request(owner, weights[model])
            out.append((index + hold, owner, pool.lease(owner, workspace)))
            pool.use(owner)
        except OutOfMemoryError:
            oom += 1
    counts = pool.counts
    return _row(
        counts.granted,
        counts.granted_bytes,
        oom=oom,
        gaps=counts.no_hole,
        moved=counts.moved_bytes,
    )


def _moved(*_move: str | int) -> None:
    """Copy nothing: what moves is counted, there are no bytes behind it."""


def _row(reloads: int, reloaded: int, *, oom: int, gaps: int, moved: int) -> Row:
    copy_s = moved / MOVE_BYTES_PER_S + reloaded / LOAD_BYTES_PER_S
    per_1000 = reloads * 1000 / pool_trace.REQUEST_COUNT
    return Row(per_1000, reloaded / GIB, gaps, oom, moved / GIB, copy_s)


def _mean(rows: Sequence[Row]) -> dict[str, float]:
    return {
        field.name: round(statistics.fmean(getattr(row, field.name) for row in rows), 3)
        for field in fields(Row)
    }


def looked_at(block_count: int) -> float:
    """Return the holes looked at per allocate and free, with that many blocks around."""
    arena = Arena((2 * block_count + 64) * MIB, guard_bytes=0)
    offsets = [arena.allocate((1 + index % 3) * MIB // 2) for index in range(2 * block_count)]
    for offset in offsets[::2]:
        arena.free(offset)
    before, rounds = arena.looked_at, 1000
    for index in range(rounds):
        low = arena.allocate((1 + index % 3) * MIB // 2)
        high = arena.allocate((1 + index % 5) * MIB // 2, end="high")
        arena.free(low)
        arena.free(high)
    return (arena.looked_at - before) / (2 * rounds)


def main() -> None:
    """Serve the five streams with every policy and print the means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", metavar="FILE", help="write one JSON object; - is stdout")
    target = parser.parse_args().json
    policies = {}
    for name in BASELINES:
        policies[name] = _mean([run_baseline(name, seed) for seed in pool_trace.SEEDS])
    policies["this"] = _mean([run_this(seed) for seed in pool_trace.SEEDS])
    this, best = policies["this"], policies["best_fit"]
    few, many = (looked_at(count) for count in BLOCKS)
    report(
        {
            "policies": policies,
            "reloads_ratio": round(this["reloads_per_1000"] / best["reloads_per_1000"], 3),
            "reloaded_ratio": round(this["reloaded_gib"] / best["reloaded_gib"], 3),
            "copy_ratio": round(this["copy_s"] / best["copy_s"], 3),
            "looked_at": {"100": round(few, 2), "10000": round(many, 2)},
            "looked_at_ratio": round(many / few, 3),
        },
        target,
    )


if __name__ == "__main__":
    main()
