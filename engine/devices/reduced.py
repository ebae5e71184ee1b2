"""Reduced: a packed block at a lower precision - bf16, or int8 with a scale per channel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from engine.devices.packing import ALIGNMENT, Layout, Slot
from engine.rules import Precision
from engine.units import align_up

_FEWEST = 1024  # smaller tensors, as biases and norms, are not worth what they would lose
_LARGEST_INT8 = 127


@dataclass(frozen=True, slots=True)
class ReducedSlot:
    """Say how one tensor is kept in the reduced block.

    Attributes:
        slot: As it lies in the full block.
        form: `full` bytes, `bf16`, or `int8` with its scales.
        offset: Of its first byte in the reduced block.
        scale_offset: Of its scales, float32 (channels,); only for `int8`.
    """

    slot: Slot
    form: str
    offset: int
    scale_offset: int = 0

    @property
    def full_bytes(self) -> int:
        """Return what it takes once it is materialised."""
        return prod(self.slot.shape) * self.slot.dtype.itemsize


@dataclass(frozen=True, slots=True)
class ReducedLayout:
    """List the slots of a reduced block, by the order of the full one, and its size."""

    precision: Precision
    slots: tuple[ReducedSlot, ...]
    size_bytes: int


def plan_reduced(layout: Layout, precision: Precision) -> ReducedLayout:
    """Lay out a block at a lower precision; known without any weights.

    Floating-point tensors of at least two dimensions and 1024 numbers are
    reduced; all others stay as they are, and so do those that overlap another
    tensor or have gaps.
    """
    assert precision in ("bf16", "int8"), f"{precision} is not a lower precision"
    shared = _overlapping(layout.slots)
    slots: list[ReducedSlot] = []
    groups: dict[int, int] = {}
    at = 0
    for index, slot in enumerate(layout.slots):
        if index in shared or not _is_reducible(slot):
            start, end = _span(slot) if index not in shared else shared[index]
            if start not in groups:
                groups[start] = at
                at = align_up(at + end - start, ALIGNMENT)
            own = slot.offset * slot.dtype.itemsize
            slots.append(ReducedSlot(slot, "full", groups[start] + own - start))
            continue
        offset, width = at, 2 if precision == "bf16" else 1
        at = align_up(at + prod(slot.shape) * width, ALIGNMENT)
        scales = at
        if precision == "int8":
            at = align_up(at + slot.shape[0] * 4, ALIGNMENT)
        slots.append(ReducedSlot(slot, precision, offset, scales))
    return ReducedLayout(precision, tuple(slots), max(ALIGNMENT, at))


def write_reduced(full: Tensor, reduced: ReducedLayout, *, target: Tensor) -> None:
    """Write a block at a lower precision from the full one, tensor by tensor.

    Needs no more scratch than the largest tensor.

    Args:
        full: uint8 (bytes,) of the full block, in host memory.
        target: uint8 (size_bytes,), on any device.
    """
    with torch.no_grad():
        for own in reduced.slots:
            source = view(full, own.slot)
            if own.form == "full":
                start, end = _span(own.slot)
                length = end - start
                raw = full[start:end]
                target[own.offset : own.offset + length].copy_(raw)
            elif own.form == "bf16":
                stored(target, own).copy_(source)
            else:
                _write_int8(source, own, target=target)


def _write_int8(source: Tensor, own: ReducedSlot, *, target: Tensor) -> None:
    """Round symmetrically, the largest number of each output channel to 127."""
    largest = source.abs().amax(dim=tuple(range(1, source.dim())))
    scale = torch.where(largest > 0, largest / _LARGEST_INT8, torch.ones_like(largest))
    shape = (-1, *(1 for _ in source.shape[1:]))
    rounded = (source / scale.view(shape)).round_().clamp_(-_LARGEST_INT8, _LARGEST_INT8)
    stored(target, own).copy_(rounded)
    scales(target, own).copy_(scale)


def materialise(block: Tensor, own: ReducedSlot) -> Tensor:
    """Return a reduced tensor in its original dtype, shape and stride, in new memory."""
    slot = own.slot
    out = torch.empty_strided(slot.shape, slot.stride, dtype=slot.dtype, device=block.device)
    out.copy_(stored(block, own))
    if own.form == "int8":
        shape = (-1, *(1 for _ in slot.shape[1:]))
        out.mul_(scales(block, own).view(shape))
    return out


def stored(block: Tensor, own: ReducedSlot) -> Tensor:
    """Return the view of a reduced tensor in its block, with the strides of the full one."""
    dtype = torch.bfloat16 if own.form == "bf16" else torch.int8
    numbers = prod(own.slot.shape)
    flat = block[own.offset : own.offset + numbers * dtype.itemsize].view(dtype)
    return flat.as_strided(own.slot.shape, own.slot.stride, flat.storage_offset())


def kept(block: Tensor, own: ReducedSlot) -> Tensor:
    """Return the view of a tensor that was not reduced in the reduced block."""
    start, end = _span(own.slot)
    flat = block[own.offset : own.offset + end - start].view(own.slot.dtype)
    return flat.as_strided(own.slot.shape, own.slot.stride, flat.storage_offset())


def scales(block: Tensor, own: ReducedSlot) -> Tensor:
    """Return the scales of a tensor in its block: float32 (channels,)."""
    start = own.scale_offset
    return block[start : start + own.slot.shape[0] * 4].view(torch.float32)


def view(block: Tensor, slot: Slot) -> Tensor:
    """Return a tensor of the full block as a view of it."""
    start, end = _span(slot)
    flat = block[start:end].view(slot.dtype)
    return flat.as_strided(slot.shape, slot.stride, flat.storage_offset())


def _span(slot: Slot) -> tuple[int, int]:
    """Return the first byte of a tensor in the full block and the one behind its last."""
    width = slot.dtype.itemsize
    start = slot.offset * width
    if not prod(slot.shape):
        return start, start
    reach = sum((n - 1) * step for n, step in zip(slot.shape, slot.stride, strict=True))
    return start, start + (reach + 1) * width


def _is_reducible(slot: Slot) -> bool:
    start, end = _span(slot)
    numbers = prod(slot.shape)
    return (
        slot.dtype is torch.float32
        and len(slot.shape) >= 2
        and numbers >= _FEWEST
        and end - start == numbers * slot.dtype.itemsize
    )


def _overlapping(slots: Sequence[Slot]) -> dict[int, tuple[int, int]]:
    """Return the slots that share bytes with another, each with the span of its group."""
    order = sorted(range(len(slots)), key=lambda index: _span(slots[index]))
    found: dict[int, tuple[int, int]] = {}
    for group in _groups(order, slots):
        if len(group) > 1:
            spans = [_span(slots[index]) for index in group]
            whole = (spans[0][0], max(end for _, end in spans))
            found |= dict.fromkeys(group, whole)
    return found


def _groups(order: Sequence[int], slots: Sequence[Slot]) -> Iterator[list[int]]:
    group: list[int] = []
    end = 0
    for index in order:
        start, own_end = _span(slots[index])
        if group and start >= end:
            yield group
            group = []
        group.append(index)
        end = max(end, own_end)
    if group:
        yield group
