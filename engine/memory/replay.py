"""Replay: where weights lay at an earlier instant, from a keyframe and the changes since."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from engine.memory.state import BlockKind, BlockState, DeviceState, ResidentState

ChangeKind = Literal["load", "evict", "move", "convert", "undo", "lost"]
_KEPT: tuple[BlockKind, ...] = ("resident", "loading", "moving", "evicting")


@dataclass(frozen=True, slots=True)
class DeviceBlocks:
    """Hold a device's weights at one instant; leases are not among them.

    Attributes:
        arena_bytes: Where the arena ends, guard included.
    """

    name: str
    arena_bytes: int
    guard_bytes: int
    blocks: tuple[BlockState, ...]

    @property
    def residents(self) -> tuple[ResidentState, ...]:
        """Return nothing: of earlier residents only the blocks are known."""
        return ()


@dataclass(frozen=True, slots=True)
class WeightChange:
    """Say how a device's weights changed.

    Attributes:
        subject: Id of the load, eviction, move or conversion; an `undo` names the same.
        offset: Where the weights lie from then on.
        size_bytes: And how many they are.
    """

    at_ns: int
    kind: ChangeKind
    device: str
    model: str = ""
    subject: int | None = None
    offset: int = 0
    size_bytes: int = 0


def weights_of(device: DeviceState) -> DeviceBlocks:
    """Return the weights of a published state."""
    guard = sum(b.size_bytes for b in device.blocks if b.kind == "guard")
    end = max((b.offset + b.size_bytes for b in device.blocks), default=0)
    kept = tuple(
        replace(b, kind="resident") for b in device.blocks if b.kind in _KEPT and b.model
    )
    return DeviceBlocks(device.name, end, guard, kept)


def replay(
    keyframe: Iterable[DeviceBlocks], changes: Iterable[WeightChange]
) -> tuple[DeviceBlocks, ...]:
    """Return every device's weights after the changes, with the holes between them.

    A change counts from its decision on: what is being loaded or moved lies
    where it will lie. One that failed is undone.

    Args:
        changes: In order.
    """
    devices = {device.name: device for device in keyframe}
    blocks = {name: {b.model: b for b in device.blocks} for name, device in devices.items()}
    before: dict[tuple[str, int], tuple[str, BlockState | None]] = {}
    for change in changes:
        held = blocks.get(change.device)
        if held is None:
            continue
        if change.kind == "undo" and change.subject is not None:
            model, old = before.pop((change.device, change.subject), (change.model, None))
            _put(held, model, block=old)
            continue
        if change.subject is not None:
            before[change.device, change.subject] = change.model, held.get(change.model)
        _apply(held, change)
    return tuple(
        replace(device, blocks=_tiled(device, blocks[name])) for name, device in devices.items()
    )


def _apply(held: dict[str, BlockState], change: WeightChange) -> None:
    if change.kind == "lost":
        held.clear()
    elif change.kind == "evict":
        held.pop(change.model, None)
    else:
        block = BlockState(change.offset, change.size_bytes, "resident", change.model)
        held[change.model] = block


def _put(held: dict[str, BlockState], model: str, *, block: BlockState | None) -> None:
    if block is None:
        held.pop(model, None)
    else:
        held[model] = block


def _tiled(device: DeviceBlocks, held: Mapping[str, BlockState]) -> tuple[BlockState, ...]:
    """Return guard, blocks and holes in address order."""
    found = [BlockState(0, device.guard_bytes, "guard")]
    at = device.guard_bytes
    for block in sorted(held.values(), key=lambda b: (b.offset, b.model)):
        if block.offset > at:
            found.append(BlockState(at, block.offset - at, "hole"))
        found.append(block)
        at = max(at, block.offset + block.size_bytes)
    if at < device.arena_bytes:
        found.append(BlockState(at, device.arena_bytes - at, "hole"))
    return tuple(found)
