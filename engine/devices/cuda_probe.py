"""Probe on a card: workspace and latency of a model there, measured in a moment."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from engine.devices.dry_run import make_input
from engine.devices.packing import Layout, Weights
from engine.devices.probe import Cost, fit_line
from engine.profile import Latency
from engine.spec import Bucket
from engine.units import MIB

_ITEMS = (1, 4)
_ROUNDS = 3
_DEVICE = "cuda:0"
_SEGMENT_BYTES = 22 * MIB  # torch takes memory in segments of 2 and of 20 MiB


def probe_cuda(
    skeleton: nn.Module, packed: tuple[Layout, Tensor], *, buckets: Sequence[Bucket]
) -> tuple[Cost, ...] | None:
    """Find out workspace and latency on the first card, for every item shape.

    Args:
        packed: Layout and block of the weights.

    Returns:
        None where there is no card, or no room left on it, or the model does not run there.
    """
    if not torch.cuda.is_available():
        return None
    layout, block = packed
    weights = Weights(skeleton, layout, device=_DEVICE)
    try:
        weights.point(block.to(_DEVICE), 0)
        return tuple(_probe(weights.module, bucket) for bucket in buckets)
    except RuntimeError:  # whatever it is, a batch will say it
        return None
    finally:
        weights.drop()
        torch.cuda.empty_cache()


def _probe(module: nn.Module, bucket: Bucket) -> Cost:
    measured = [(items, *_measure(module, bucket, items=items)) for items in _ITEMS]
    (few, few_bytes, few_ns), (many, many_bytes, many_ns) = measured
    workspace = fit_line((few, few_bytes), (many, many_bytes))
    line = fit_line((few, few_ns), (many, many_ns))
    return Cost(
        bucket,
        replace(workspace, fixed=workspace.fixed + _SEGMENT_BYTES),
        Latency(few_ns, line.fixed, line.item),
        ((few, few_ns), (many, many_ns)),
        f"measured on {torch.cuda.get_device_name(_DEVICE)} at batch {few} and {many}",
    )


def _measure(module: nn.Module, bucket: Bucket, *, items: int) -> tuple[int, int]:
    """Return the most bytes that were held, and the nanoseconds of the best run."""
    with torch.inference_mode():
        module(make_input(bucket, items, device=_DEVICE))  # libraries prepare themselves
        torch.cuda.synchronize(_DEVICE)
        before = torch.cuda.memory_allocated(_DEVICE)
        torch.cuda.reset_peak_memory_stats(_DEVICE)
        x = make_input(bucket, items, device=_DEVICE)
        times: list[int] = []
        for _ in range(_ROUNDS):
            start_ns = time.perf_counter_ns()
            module(x)
            torch.cuda.synchronize(_DEVICE)
            times.append(time.perf_counter_ns() - start_ns)
        return torch.cuda.max_memory_allocated(_DEVICE) - before, min(times)
