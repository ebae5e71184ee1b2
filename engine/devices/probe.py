"""Probe: what a model costs on the CPU of this machine, found out in a moment."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import torch
from torch import Tensor, nn

from engine.devices.dry_run import make_input, scratch_bytes, watch_pass
from engine.profile import Latency, Profile, ProfileKey
from engine.spec import Bucket
from engine.units import NS_PER_MS

_PLAN_ITEMS = (1, 4)
_BUDGET_NS = 150 * NS_PER_MS
_SLOW_NS = 80 * NS_PER_MS
_QUICK_NS = 10 * NS_PER_MS
_ROUNDS = 3

Points = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Line:
    """Be `fixed + item * items`; what is below 0 is cut off."""

    fixed: int
    item: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Hold the workspace of one item shape before anything was measured."""

    bucket: Bucket
    workspace: Line
    writes_input: bool
    source: str


@dataclass(frozen=True, slots=True)
class Cost:
    """Hold what was found out about one item shape.

    Attributes:
        kernels: Part of the workspace that kernels take and free inside themselves.
    """

    bucket: Bucket
    workspace: Line
    latency: Latency
    points: Points
    source: str
    kernels: Line = Line(0, 0)

    def profile(self, key: ProfileKey, weight_bytes: int) -> Profile:
        """Return it as a profile for this key."""
        return Profile(
            key,
            weight_bytes,
            self.workspace.fixed,
            self.workspace.item,
            self.latency,
            self.points,
            self.source,
        )


def fit_line(few: tuple[int, int], many: tuple[int, int]) -> Line:
    """Return the line through two points (items, value), never below either of them.

    A pass that grows faster than its items would need a negative fixed part;
    its slope then starts at 0 instead.
    """
    (few_items, low), (many_items, high) = few, many
    item = max(0, -(-(high - low) // (many_items - few_items)))
    fixed = low - item * few_items
    if fixed >= 0:
        return Line(fixed, item)
    return Line(0, max(-(-low // few_items), -(-high // many_items)))


def plan(
    module: nn.Module, skeleton: nn.Module, *, buckets: Sequence[Bucket]
) -> tuple[Plan, ...]:
    """Plan the workspace of every item shape on the meta device, without running anything.

    Where an operator has no meta form, the model is run for real instead.

    Args:
        module: With its weights, on the CPU.
        skeleton: The same without memory.

    Raises:
        Exception: Whatever the model raises, or TypeError for its output.
    """
    plans: list[Plan] = []
    for bucket in buckets:
        try:
            plans.append(_plan_on("meta", skeleton, bucket=bucket))
        except Exception:  # noqa: BLE001  # whatever it is, the real run will tell
            plans.append(_plan_on("cpu", module, bucket=bucket))
    return tuple(plans)


def measure(module: nn.Module, plans: Sequence[Plan]) -> tuple[Cost, ...]:
    """Find out what a model costs on the CPU of this machine.

    The plan is checked once by a profiled run, whose surplus (scratch inside
    kernels) is added. Latency is measured for about 150 ms in all, then
    scaled from the first shape by size; real traffic will correct it.

    Raises:
        Exception: Whatever the model raises.
    """
    torch.set_num_threads(1)  # as on a device's worker; left so: MKL's count is the process's
    stop_ns = time.perf_counter_ns() + _BUDGET_NS
    first = plans[0]
    first_ns = best_ns(module, make_input(first.bucket, 1), rounds=1)
    start_ns = time.perf_counter_ns()
    over = _over(module, first, items=1)
    first_ns = min(first_ns, time.perf_counter_ns() - start_ns)
    latency, points, found = _measure_first(
        module, first.bucket, first_ns=first_ns, stop_ns=stop_ns
    )
    surplus = _surplus(module, first, over=over, latency=latency)
    costs: list[Cost] = []
    for own in plans:
        if costs:
            latency, points, found = _measure_further(
                module, own.bucket, first=costs[0], stop_ns=stop_ns
            )
        workspace = _add(own.workspace, first.workspace, surplus=surplus)
        source = f"workspace {own.source}, checked by the profiler; {found}"
        kernels = _less(workspace, own.workspace)
        costs.append(Cost(own.bucket, workspace, latency, points, source, kernels))
    return tuple(costs)


def _plan_on(device: str, module: nn.Module, *, bucket: Bucket) -> Plan:
    few, many = _PLAN_ITEMS
    one = watch_pass(module, make_input(bucket, few, device=device))
    more = watch_pass(module, make_input(bucket, many, device=device))
    line = fit_line((few, one.peak_bytes), (many, more.peak_bytes))
    source = "planned by a dry run" if device == "meta" else "measured in a real run"
    return Plan(bucket, line, one.writes_input, source)


def _surplus(module: nn.Module, own: Plan, *, over: int, latency: Latency) -> Line:
    """Return what profiled runs hold beyond the plan, given the bytes at batch 1.

    From batch 1 alone it cannot be told which part grows with the items, so
    all of it is taken to grow; a quick model is run at 4 as well.
    """
    few, many = _PLAN_ITEMS
    if latency.at(many) > _QUICK_NS:
        return Line(0, over)
    return fit_line((few, over), (many, _over(module, own, items=many)))


def _over(module: nn.Module, own: Plan, *, items: int) -> int:
    held = scratch_bytes(module, make_input(own.bucket, items))
    return max(0, held - own.workspace.fixed - own.workspace.item * items)


def _add(plan: Line, first: Line, *, surplus: Line) -> Line:
    """Return a plan with the surplus that was found at the first shape, in proportion."""
    base = max(1, first.item)
    return Line(plan.fixed + surplus.fixed, plan.item + -(-surplus.item * plan.item // base))


def _less(whole: Line, plan: Line) -> Line:
    return Line(whole.fixed - plan.fixed, whole.item - plan.item)


def _measure_first(
    module: nn.Module, bucket: Bucket, *, first_ns: int, stop_ns: int
) -> tuple[Latency, Points, str]:
    """Return the latency of the default shape; a slow model was measured enough by now."""
    if first_ns > _SLOW_NS:
        return Latency(0, 0, first_ns), ((1, first_ns),), "latency measured at batch 1"
    one_ns = best_ns(module, make_input(bucket, 1))
    left_ns = stop_ns - time.perf_counter_ns()
    items = next((items for items in (4, 2) if items * one_ns < left_ns), None)
    if items is None:
        return Latency(0, 0, one_ns), ((1, one_ns),), "latency measured at batch 1"
    rounds = _ROUNDS if _ROUNDS * items * one_ns < left_ns else 1
    many_ns = best_ns(module, make_input(bucket, items), rounds=rounds)
    line = fit_line((1, one_ns), (items, many_ns))
    latency = Latency(one_ns, line.fixed, line.item)
    return latency, ((1, one_ns), (items, many_ns)), f"latency measured at batch 1 and {items}"


def _measure_further(
    module: nn.Module, bucket: Bucket, *, first: Cost, stop_ns: int
) -> tuple[Latency, Points, str]:
    """Measure a further shape at batch 1 if there is time, else scale by its size."""
    scale = prod(bucket.shape) / max(1, prod(first.bucket.shape))
    latency = _scaled(first.latency, scale)
    if time.perf_counter_ns() + latency.at(1) > stop_ns:
        return latency, (), "latency scaled by size from the first shape"
    one_ns = best_ns(module, make_input(bucket, 1), rounds=1)
    scale = one_ns / max(1, first.latency.at(1))
    return _scaled(first.latency, scale), ((1, one_ns),), "latency measured at batch 1"


def _scaled(latency: Latency, scale: float) -> Latency:
    return replace(
        latency,
        floor_ns=round(latency.floor_ns * scale),
        fixed_ns=round(latency.fixed_ns * scale),
        per_item_ns=round(latency.per_item_ns * scale),
    )


def best_ns(module: nn.Module, x: Tensor, *, rounds: int = _ROUNDS) -> int:
    """Return the time of the shortest of a few runs."""
    times: list[int] = []
    with torch.inference_mode():
        for _ in range(rounds):
            start_ns = time.perf_counter_ns()
            module(x)
            times.append(time.perf_counter_ns() - start_ns)
    return min(times)
