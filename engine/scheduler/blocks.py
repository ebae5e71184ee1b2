"""Blocks: a device's arena as it is shown - every block and hole at its address."""

from __future__ import annotations

from collections.abc import Iterator

from engine.memory.holdings import Resident
from engine.memory.state import BlockKind, BlockState
from engine.scheduler.books import DeviceBooks, Reservation


def blocks(device: DeviceBooks) -> tuple[BlockState, ...]:
    """Return blocks and holes in address order; together they tile the arena."""
    arena = device.pool.arena
    named = _named(device)
    windows = {
        r.claim.window[0]: r for r in device.reservations.values() if r.claim.window is not None
    }
    found = [BlockState(0, arena.guard_bytes, "guard")]
    for offset, size in arena.blocks():
        if offset in windows:
            found += _inside(device, windows[offset], size_bytes=size)
            continue
        kind, model = named.get(offset, ("claimed", ""))
        found.append(BlockState(offset, size, kind, model))
    found += [BlockState(offset, size, "hole") for offset, size in arena.holes()]
    found.sort(key=lambda block: block.offset)
    return tuple(found)


def _named(device: DeviceBooks) -> dict[int, tuple[BlockKind, str]]:
    """Return kind and model of the blocks that are somebody's, by offset."""
    named: dict[int, tuple[BlockKind, str]] = {}
    for resident in device.pool.residents.values():
        named[resident.offset] = (_kind(resident), resident.model)
    if device.warm is not None and device.warm.offset is not None:
        named[device.warm.offset] = ("lease", "")
    for batch in (device.running, device.prepared):
        if batch is not None and batch.lease is not None and batch.lease.offset is not None:
            named[batch.lease.offset] = ("lease", batch.lane.key.model)
    return named


def _kind(resident: Resident) -> BlockKind:
    if resident.is_leaving:
        return "evicting"
    if resident.is_changing:
        return "moving"
    return "resident" if resident.is_ready else "loading"


def _inside(
    device: DeviceBooks, reservation: Reservation, *, size_bytes: int
) -> Iterator[BlockState]:
    """Yield what lies in a window that is being opened: who moves or leaves, and the rest."""
    claim, residents = reservation.claim, device.pool.residents
    assert claim.window is not None, "only a window has an inside"
    at, end = claim.window[0], claim.window[0] + size_bytes
    inside = [residents[model] for model in (*claim.movers, *claim.waiting_for)]
    for resident in sorted(inside, key=lambda r: r.offset):
        if not claim.holds_inside(resident.offset):
            continue
        if at < resident.offset:
            yield BlockState(at, resident.offset - at, "claimed", reservation.model)
        size = min(resident.size_bytes, end - resident.offset)
        yield BlockState(resident.offset, size, _kind(resident), resident.model)
        at = resident.offset + size
    if at < end:
        yield BlockState(at, end - at, "claimed", reservation.model)
