"""Lower: what a model is at a lower precision - size, scratch, time, accuracy."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from engine.devices.dry_run import make_input
from engine.devices.materialise import DEPTHS, ReducedWeights, full_module, scratch_bytes
from engine.devices.packing import Layout, Weights
from engine.devices.probe import best_ns
from engine.devices.reduced import ReducedLayout, plan_reduced, write_reduced
from engine.errors import InputError
from engine.profile import Profile
from engine.rules import Precision
from engine.spec import ModelSpec


@dataclass(frozen=True, slots=True)
class Source:
    """Hold the full model that a lower one is made from.

    Attributes:
        block: uint8 (bytes,): the full weights.
    """

    spec: ModelSpec
    block: Tensor
    layout: Layout
    skeleton: nn.Module
    profiles: tuple[Profile, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """Say how the output on the example input differs from that of full precision.

    Attributes:
        relative: Length of the difference, relative to the output's (L2).
        largest: Largest difference of a single number.
        decided_otherwise: Share of rows whose largest number is another one.
    """

    relative: float
    largest: float
    decided_otherwise: float

    def __str__(self) -> str:
        """Write it as one phrase."""
        return (
            f"output changes by {self.relative:.2%} (largest {self.largest:.2g}), "
            f"{self.decided_otherwise:.1%} of rows decide otherwise"
        )


@dataclass(frozen=True, slots=True)
class Lower:
    """Hold a model at a lower precision, without its weights: those come from the host copy."""

    reduced: ReducedLayout
    depth: int
    change: Change
    profiles: tuple[Profile, ...]

    @property
    def size_bytes(self) -> int:
        """Return the size of the reduced block."""
        return self.reduced.size_bytes

    def weights(self, source: Source, *, device: str = "cpu") -> ReducedWeights:
        """Return a module that reads from such a block."""
        return ReducedWeights(
            source.skeleton,
            source.layout,
            reduced=self.reduced,
            depth=self.depth,
            device=device,
        )


def make_lower(source: Source, precision: Precision) -> Lower:
    """Find out how a model does at a lower precision, on its example input.

    Raises:
        InputError: It cannot be run from reduced weights.
    """
    started_ns = time.perf_counter_ns()
    reduced = plan_reduced(source.layout, precision)
    block = torch.zeros(reduced.size_bytes, dtype=torch.uint8)
    write_reduced(source.block, reduced, target=block)
    x = _example(source.spec)
    depth, weights = _working(source, reduced, block=block, x=x)
    full = Weights(source.skeleton, source.layout)
    full.point(source.block, 0)
    with torch.inference_mode():
        change = measure_change(full.module(x), weights.module(x))
    slower_ns = max(0, best_ns(weights.module, x, rounds=2) - best_ns(full.module, x, rounds=2))
    took_ms = (time.perf_counter_ns() - started_ns) / 1e6
    profiles = tuple(
        replace(
            profile,
            key=profile.key._replace(precision=precision),
            weight_bytes=reduced.size_bytes,
            workspace_fixed_bytes=profile.workspace_fixed_bytes + scratch_bytes(reduced, depth),
            latency=replace(
                profile.latency,
                floor_ns=profile.latency.floor_ns + slower_ns,
                fixed_ns=profile.latency.fixed_ns + slower_ns,
            ),
            output_change=change.relative,
            source=f"{precision}: {change}; {slower_ns / 1e6:.1f} ms slower per batch; "
            f"measured on the example input in {took_ms:.0f} ms",
        )
        for profile in source.profiles
    )
    return Lower(reduced, depth, change, profiles)


def measure_change(full: Tensor, lower: Tensor) -> Change:
    """Compare two outputs of the same input.

    Args:
        full: (items, ...), at full precision.
        lower: The same shape.
    """
    a, b = full.double(), lower.double()
    norm = float(torch.linalg.vector_norm(a))
    relative = float(torch.linalg.vector_norm(a - b)) / norm if norm else 0.0
    largest = float((a - b).abs().max()) if a.numel() else 0.0
    otherwise = 0.0
    if a.dim() >= 2 and a.shape[-1] > 1:
        otherwise = float((a.argmax(-1) != b.argmax(-1)).double().mean())
    return Change(relative, largest, otherwise)


def _example(spec: ModelSpec) -> Tensor:
    payload = spec.inputs(0).payload
    try:
        x = torch.as_tensor(payload)
    except (TypeError, ValueError, RuntimeError):
        return make_input(spec.buckets[0], 1)
    return x if x.dim() else make_input(spec.buckets[0], 1)


def _working(
    source: Source, reduced: ReducedLayout, *, block: Tensor, x: Tensor
) -> tuple[int, ReducedWeights]:
    """Return the depth nearest to the weights at which results are right, and the module."""
    reference = full_module(source.skeleton, source.layout, reduced=reduced, block=block)
    with torch.inference_mode():
        wanted = reference(x)
    reason = ""
    for depth in DEPTHS:
        weights = ReducedWeights(source.skeleton, source.layout, reduced=reduced, depth=depth)
        weights.point(block, 0)
        try:
            with torch.inference_mode():
                found = weights.module(x)
        except Exception as error:  # noqa: BLE001  # nearer the root it may do
            reason = f"{type(error).__name__}: {error}"
            continue
        if torch.equal(found, wanted):
            return depth, weights
        reason = "its results differ from those of the same weights in full"
    raise InputError(
        f"{source.spec.name}: cannot be held at {reduced.precision}: {reason}; leave it at fp32"
    )
