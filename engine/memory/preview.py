"""Preview: what a compaction would move and what it would open, before anything moves."""

from __future__ import annotations

from dataclasses import dataclass

from engine.memory.compaction import Budget, largest_openable, plan_compaction
from engine.memory.eviction import Candidate
from engine.memory.holdings import Move
from engine.memory.state import DeviceState


@dataclass(frozen=True, slots=True)
class Preview:
    """Show a compaction that was not ordered yet.

    Attributes:
        hole_bytes: Largest hole now.
        opened_bytes: Hole that it opens.
        moves: In order; none: nothing that may move stands in the way.
        took_ns: Expected time on the device, during which no batch runs there.
    """

    device: str
    hole_bytes: int
    opened_bytes: int
    moves: tuple[Move, ...]
    took_ns: int

    @property
    def moved_bytes(self) -> int:
        """Return the bytes that it copies."""
        return sum(move.size_bytes for move in self.moves)


def preview(device: DeviceState, size_bytes: int = 0) -> Preview | None:
    """Return the cheapest compaction that opens a hole, by moves alone.

    Args:
        size_bytes: Of the hole; 0: the largest that moves can open.

    Returns:
        None: no moves open it, because too few bytes are free or what is in use
        stands between them.
    """
    holes = [(b.offset, b.size_bytes) for b in device.blocks if b.kind == "hole"]
    movable = [
        Candidate(
            r.model,
            r.size_bytes,
            r.offset,
            r.last_used_ns,
            has_queue=False,
            serial=index,
            may_leave=False,
            may_move=r.is_movable,
        )
        for index, r in enumerate(device.residents)
        if not (r.in_use or r.is_changing)
    ]
    fence = device.pool_target_bytes + sum(
        b.size_bytes for b in device.blocks if b.kind == "guard"
    )
    fence_bytes = fence if device.addressed else None
    wanted = size_bytes or largest_openable(holes, movable, fence_bytes=fence_bytes)
    if wanted <= device.largest_hole_bytes:
        return None
    price = 1e9 / device.move_bytes_per_s
    plan = plan_compaction(
        holes,
        movable,
        size_bytes=wanted,
        budget=Budget(price, device.pool_bytes),
        fence_bytes=fence_bytes,
    )
    if plan is None:
        return None
    took_ns = round(plan.moved_bytes * price)
    return Preview(device.name, device.largest_hole_bytes, wanted, plan.moves, took_ns)
