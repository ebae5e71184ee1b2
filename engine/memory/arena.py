"""Arena: tile a device's byte range into blocks and holes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, Self

from engine.errors import OutOfMemoryError, PolicyError
from engine.memory.holes import Holes
from engine.units import MIB, align_up, format_bytes

End = Literal["low", "high"]
ArenaState = tuple[int, int, int, int, tuple[tuple[int, int, str], ...]]
"""Size, alignment, guard and fence in bytes; then (offset, size, owner) of every block."""


class Arena:
    """Lend blocks of a byte range from both of its ends; neighbouring holes are one.

    Weights, which stay, grow from the low end; leases, which go soon, come
    from the high end, so that the two do not cut each other's holes. Blocks
    and holes tile the range between the guard and the fence at any instant.

    The guard at offset 0 is never lent: there are libraries that take address
    0 of a range for "no memory". The fence moves live; blocks beyond it stay until
    they are freed, and their bytes do not become holes.
    """

    __slots__ = (
        "_blocks",
        "_held_bytes",
        "_holes",
        "alignment",
        "fence_bytes",
        "guard_bytes",
        "size_bytes",
    )

    def __init__(
        self, size_bytes: int, alignment: int = 512, *, guard_bytes: int = 2 * MIB
    ) -> None:
        """Start with one hole from the guard to the end.

        Args:
            size_bytes: Rounded down to the alignment: a smaller rest cannot be lent.
            guard_bytes: Rounded up to the alignment.

        Raises:
            PolicyError: The guard alone is larger.
        """
        self.alignment = alignment
        self.size_bytes = size_bytes - size_bytes % alignment
        self.guard_bytes = align_up(guard_bytes, alignment)
        self._blocks: dict[int, tuple[int, str]] = {}
        self._held_bytes = 0
        self._holes = Holes()
        self.fence_bytes = 0
        self.set_fence(self.size_bytes)

    def __repr__(self) -> str:
        """Show sizes and counts."""
        return (
            f"Arena(size={format_bytes(self.size_bytes)}, "
            f"fence={format_bytes(self.fence_bytes)}, "
            f"held={format_bytes(self._held_bytes)} in {len(self._blocks)} blocks, "
            f"free={format_bytes(self.free_bytes)} in {len(self._holes)} holes)"
        )

    @property
    def free_bytes(self) -> int:
        """Return the bytes of all holes."""
        return self._holes.free_bytes

    @property
    def held_bytes(self) -> int:
        """Return the bytes of all blocks, those beyond the fence included."""
        return self._held_bytes

    @property
    def pool_bytes(self) -> int:
        """Return held + free: the range as it is while blocks lie beyond the fence."""
        return self._held_bytes + self.free_bytes

    @property
    def target_bytes(self) -> int:
        """Return what the pool will be once no block lies beyond the fence."""
        return self.fence_bytes - self.guard_bytes

    @property
    def largest_hole_bytes(self) -> int:
        """Return the size of the largest hole; 0 if there is none."""
        return self._holes.largest_bytes

    @property
    def looked_at(self) -> int:
        """Return how many holes were looked at so far; tests bound it."""
        return self._holes.looked_at

    def can_fit(self, size_bytes: int) -> bool:
        """Return whether a block of that size could be had now."""
        return align_up(size_bytes, self.alignment) <= self.largest_hole_bytes

    def blocks(self) -> list[tuple[int, int]]:
        """Return (offset, size) of every block, by offset."""
        return sorted((offset, size) for offset, (size, _) in self._blocks.items())

    def holes(self) -> list[tuple[int, int]]:
        """Return (offset, size) of every hole, by offset."""
        return self._holes.by_offset()

    def owner(self, offset: int) -> str:
        """Return whose block it is."""
        return self._blocks[offset][1]

    def allocate(self, size_bytes: int, *, end: End = "low", owner: str = "") -> int:
        """Reserve a block and return its offset.

        `low`: best fit, the smallest hole that is large enough, the lowest
        among equals, carved from its low end; O(log n). `high`: the highest
        hole that is large enough, carved from its high end.

        Args:
            size_bytes: More than 0; rounded up to the alignment.
            owner: Name to find the block by.

        Returns:
            Offset of the block in bytes from the arena's start.

        Raises:
            OutOfMemoryError: No hole is large enough. Nothing has changed.

        Source: Knuth, The Art of Computer Programming vol. 1, section 2.5.
        """
        assert size_bytes > 0, f"a block has a size, not {size_bytes}"
        size = align_up(size_bytes, self.alignment)
        found = self._holes.smallest(size) if end == "low" else self._holes.highest(size)
        if found is None:
            raise self._out_of_memory(size)
        hole, hole_end = found
        offset = hole if end == "low" else hole_end - size
        self._hold(offset, size, owner=owner)
        return offset

    def allocate_at(self, offset: int, size_bytes: int, *, owner: str = "") -> None:
        """Reserve the block at that very offset.

        Args:
            offset: A multiple of the alignment.
            size_bytes: More than 0; rounded up to the alignment.

        Raises:
            OutOfMemoryError: The range is not inside one hole. Nothing has changed.
        """
        assert offset % self.alignment == 0, f"offset {offset} is not aligned"
        assert size_bytes > 0, f"a block has a size, not {size_bytes}"
        size = align_up(size_bytes, self.alignment)
        found = self._holes.around(offset)
        if found is None or found[1] < offset + size:
            raise self._out_of_memory(size)
        self._hold(offset, size, owner=owner)

    def free(self, offset: int) -> None:
        """Give a block back; the hole takes in its neighbours. O(log n)."""
        size, _ = self._blocks.pop(offset)
        self._held_bytes -= size
        self._holes.add(offset, min(offset + size, self.fence_bytes))

    def shrink(self, offset: int, size_bytes: int) -> None:
        """Give a block's tail back.

        Args:
            size_bytes: What stays: more than 0, not more than it has; rounded up
                to the alignment.
        """
        size, owner = self._blocks[offset]
        assert 0 < size_bytes <= size, f"a block of {size} cannot shrink to {size_bytes}"
        kept = align_up(size_bytes, self.alignment)
        self._blocks[offset] = (kept, owner)
        self._held_bytes -= size - kept
        self._holes.add(offset + kept, min(offset + size, self.fence_bytes))

    def split(self, offset: int, parts: Iterable[tuple[int, int]]) -> None:
        """Hold these parts of a block instead of the whole, which frees what lies between.

        Args:
            parts: (offset, size) by offset, aligned, inside the block, none touched twice.
        """
        size, owner = self._blocks.pop(offset)
        self._held_bytes -= size
        at, end = offset, offset + size
        for start, part_bytes in parts:
            assert at <= start and start + part_bytes <= end, "parts tile the block"
            self._holes.add(at, min(start, self.fence_bytes))
            self._blocks[start] = (part_bytes, owner)
            self._held_bytes += part_bytes
            at = start + part_bytes
        self._holes.add(at, min(end, self.fence_bytes))

    def join(self, offset: int) -> None:
        """Make a block one with the held block behind it."""
        size, owner = self._blocks[offset]
        behind, _ = self._blocks.pop(offset + size)
        self._blocks[offset] = (size + behind, owner)

    def set_fence(self, fence_bytes: int) -> None:
        """Move the fence: no new block reaches beyond it. O(n log n).

        Args:
            fence_bytes: From the arena's start, guard included; rounded down to
                the alignment.

        Raises:
            PolicyError: Less than the guard, or more than the arena. Nothing has
                changed.
        """
        fence = fence_bytes - fence_bytes % self.alignment
        if not self.guard_bytes <= fence <= self.size_bytes:
            raise PolicyError(
                f"the arena's fence: found {format_bytes(fence_bytes)}, wanted at least "
                f"{format_bytes(self.guard_bytes)} and at most {format_bytes(self.size_bytes)}"
            )
        self.fence_bytes = fence
        self._holes.reset(self._gaps())

    def copy(self) -> Arena:
        """Return an arena that is the same and shares nothing with this one."""
        return Arena.from_state(self.state())

    def state(self) -> ArenaState:
        """Return all that matters as plain tuples."""
        blocks = tuple((offset, *self._blocks[offset]) for offset in sorted(self._blocks))
        return self.size_bytes, self.alignment, self.guard_bytes, self.fence_bytes, blocks

    @classmethod
    def from_state(cls, state: ArenaState) -> Self:
        """Return the arena whose state that was."""
        size_bytes, alignment, guard_bytes, fence_bytes, blocks = state
        arena = cls(size_bytes, alignment, guard_bytes=guard_bytes)
        arena._blocks = {offset: (size, owner) for offset, size, owner in blocks}
        arena._held_bytes = sum(size for _, size, _ in blocks)
        arena.set_fence(fence_bytes)
        return arena

    def _gaps(self) -> Iterator[tuple[int, int]]:
        """Yield (offset, end) of what no block holds between guard and fence."""
        start = self.guard_bytes
        for offset, size in self.blocks():
            if start < min(offset, self.fence_bytes):
                yield start, min(offset, self.fence_bytes)
            start = offset + size
        if start < self.fence_bytes:
            yield start, self.fence_bytes

    def _hold(self, offset: int, size: int, *, owner: str) -> None:
        self._holes.carve(offset, offset + size)
        self._blocks[offset] = (size, owner)
        self._held_bytes += size

    def _out_of_memory(self, size: int) -> OutOfMemoryError:
        return OutOfMemoryError(
            f"wanted {format_bytes(size)} in one piece, found {format_bytes(self.free_bytes)} "
            f"free, the largest hole {format_bytes(self.largest_hole_bytes)}",
            wanted_bytes=size,
            free_bytes=self.free_bytes,
            largest_hole_bytes=self.largest_hole_bytes,
        )
