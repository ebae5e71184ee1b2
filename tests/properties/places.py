"""Places: the bytes that a device itself uses, beside the core's books."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

from engine.effects import ConvertWeights, LoadWeights, MoveWeights, RunBatch
from engine.memory.state import DeviceState

Order = LoadWeights | MoveWeights | ConvertWeights | RunBatch
Place = tuple[int, int]
"""Offset and size of weights that lie on a device."""
Range = tuple[int, int, str]
"""Start, end, and whose bytes they are."""


def ranges(
    device: str, places: Mapping[tuple[str, str], Place], *, orders: Iterable[Order]
) -> list[Range]:
    """Return every range that a device uses now or will write to, in address order.

    Args:
        places: By device and model.
        orders: What devices were told to do and have not ended.
    """
    found = [
        (offset, offset + size, model)
        for (where, model), (offset, size) in places.items()
        if where == device
    ]
    for order in orders:
        if order.device == device:
            found += _written(order)
    return sorted(found)


def _written(order: Order) -> list[Range]:
    match order:
        case LoadWeights():
            return [(order.offset, order.offset + order.size_bytes, order.model)]
        case MoveWeights():
            return [(order.new_offset, order.new_offset + order.size_bytes, order.model)]
        case ConvertWeights():
            end = order.new_offset + order.new_size_bytes
            return [(order.new_offset, end, order.model)]
        case RunBatch(lease_offset=int() as start):
            return [(start, start + order.lease_bytes, f"batch {order.batch_id}")]
        case RunBatch():
            return []


def check_ranges(found: list[Range]) -> None:
    """Fail if two owners share a byte."""
    for (_, end, owner), (start, _, other) in pairwise(found):
        assert end <= start or owner == other, f"{owner} and {other} share bytes"


def check_places(device: DeviceState, places: Mapping[tuple[str, str], Place]) -> None:
    """Fail if weights lie elsewhere than the books say."""
    shown = {b.model: b for b in device.blocks if b.kind in ("resident", "moving")}
    for (where, model), (offset, size) in places.items():
        if where == device.name and model in shown:
            block = shown[model]
            assert block.offset == offset, "the books know where weights lie"
            assert block.size_bytes == size or block.kind == "moving"
