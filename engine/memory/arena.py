"""Arena: tiles a byte range with blocks and holes; two-ended best fit, neighbours coalesce."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Literal

from engine.errors import OutOfMemoryError, PolicyError
from engine.units import MIB, align_up

GUARD_BYTES = 2 * MIB


class Arena:
    """Lend blocks of one byte range.

    Weights grow from the low end, workspaces come from the high end, so that
    short-lived blocks do not break up the space between long-lived ones. The
    guard page at offset 0 is never lent: a block at the range's very start
    would collide with the range itself where blocks are found by address.

    Holes are kept twice, by size and by offset, in sorted lists: a search is
    a bisection, and a change moves a few machine words per hole, which for
    the hundreds of holes of a device is cheaper than any tree in Python.

    Attributes:
        free_bytes: Bytes of all holes below the fence.
        held_bytes: Bytes of all blocks, those beyond the fence included.
        looked_at: Holes looked at by all calls so far; a measure of work.
    """

    __slots__ = (
        "_blocks",
        "_by_offset",
        "_by_size",
        "_fence",
        "_hole_sizes",
        "alignment",
        "free_bytes",
        "guard_bytes",
        "held_bytes",
        "looked_at",
        "size_bytes",
    )

    def __init__(
        self, size_bytes: int, alignment: int = 512, *, guard_bytes: int = GUARD_BYTES
    ) -> None:
        """Start with one hole behind the guard page.

        Args:
            size_bytes: All of the range, the guard page included.
            alignment: Offsets and sizes are multiples of it; a power of two.
        """
        self.alignment = alignment
        self.guard_bytes = guard_bytes
        self.size_bytes = max(guard_bytes, size_bytes // alignment * alignment)
        self.looked_at = 0
        self.free_bytes = 0
        self.held_bytes = 0
        self._fence = self.size_bytes
        self._blocks: dict[int, int] = {}
        self._hole_sizes: dict[int, int] = {}
        self._by_offset: list[int] = []
        self._by_size: list[tuple[int, int]] = []
        if self.size_bytes > guard_bytes:
            self._add_hole(guard_bytes, self.size_bytes - guard_bytes)

    def __repr__(self) -> str:
        """Show what matters at a glance."""
        return (
            f"Arena({self.held_bytes} held, {self.free_bytes} free in "
            f"{len(self._by_offset)} holes, fence {self._fence})"
        )

    @property
    def fence_bytes(self) -> int:
        """Return the offset beyond which nothing is lent."""
        return self._fence

    @property
    def largest_hole_bytes(self) -> int:
        """Return the size of the largest hole below the fence; 0 without one."""
        return self._by_size[-1][0] if self._by_size else 0

    def blocks(self) -> list[tuple[int, int]]:
        """Return (offset, size) of all blocks in address order."""
        return sorted(self._blocks.items())

    def holes(self) -> list[tuple[int, int]]:
        """Return (offset, size) of all holes below the fence in address order."""
        return [(offset, self._hole_sizes[offset]) for offset in self._by_offset]

    def can_fit(self, size_bytes: int) -> bool:
        """Return whether `allocate` would find a hole."""
        return align_up(size_bytes, self.alignment) <= self.largest_hole_bytes

    def allocate(self, size_bytes: int, *, end: Literal["low", "high"] = "low") -> int:
        """Reserve a block and return its offset.

        From the low end: the smallest hole that is large enough, the lowest
        offset among equals. From the high end: the highest hole that is large
        enough, and its upper end. The same calls give the same layout.

        Args:
            size_bytes: More than 0; rounded up to the alignment.

        Returns:
            Offset of the block in bytes from the arena's start.

        Raises:
            OutOfMemoryError: No hole is large enough. Nothing has changed.

        Source: Knuth, The Art of Computer Programming vol. 1, section 2.5.
        """
        assert size_bytes > 0, "a block has a size"
        size_bytes = align_up(size_bytes, self.alignment)
        if size_bytes > self.largest_hole_bytes:
            raise OutOfMemoryError(
                f"wanted {size_bytes} bytes in one piece, found {self.free_bytes} free, "
                f"the largest hole has {self.largest_hole_bytes}; evict or compact",
                wanted_bytes=size_bytes,
                free_bytes=self.free_bytes,
                largest_hole_bytes=self.largest_hole_bytes,
            )
        if end == "low":
            self.looked_at += 1
            hole_size, offset = self._by_size[bisect_left(self._by_size, (size_bytes, -1))]
            start = offset
        else:
            offset, hole_size = self._highest(size_bytes)
            start = offset + hole_size - size_bytes
        self._carve(offset, hole_size, start, size_bytes)
        return start

    def allocate_at(self, offset: int, size_bytes: int) -> None:
        """Reserve exactly this range, which lies in one hole."""
        size_bytes = align_up(size_bytes, self.alignment)
        index = bisect_left(self._by_offset, offset + 1) - 1
        assert index >= 0, "the range lies in a hole"
        hole = self._by_offset[index]
        hole_size = self._hole_sizes[hole]
        assert offset + size_bytes <= hole + hole_size, "the range lies in a hole"
        self._carve(hole, hole_size, offset, size_bytes)

    def free(self, offset: int) -> None:
        """Give a block back; it joins the holes beside it."""
        size_bytes = self._blocks.pop(offset)
        self.held_bytes -= size_bytes
        self._release(offset, size_bytes)

    def shrink(self, offset: int, size_bytes: int) -> None:
        """Keep the first bytes of a block and give the rest back.

        Args:
            size_bytes: More than 0, at most the block's size; rounded up.
        """
        size_bytes = align_up(size_bytes, self.alignment)
        before = self._blocks[offset]
        assert 0 < size_bytes <= before, "a block shrinks"
        if size_bytes < before:
            self._blocks[offset] = size_bytes
            self.held_bytes -= before - size_bytes
            self._release(offset + size_bytes, before - size_bytes)

    def set_fence(self, fence_bytes: int) -> None:
        """Lend nothing beyond this offset from now on; blocks there stay until they are freed.

        Raises:
            PolicyError: Beyond the range, or inside the guard page.
        """
        fence = fence_bytes // self.alignment * self.alignment
        if not self.guard_bytes <= fence <= self.size_bytes:
            raise PolicyError(
                f"pool: wanted a fence at {fence_bytes} bytes, "
                f"found room from {self.guard_bytes} to {self.size_bytes}"
            )
        self._fence = fence
        self._rebuild_holes()

    def _highest(self, size_bytes: int) -> tuple[int, int]:
        """Return the highest hole that is large enough, by walking down from the top."""
        for offset in reversed(self._by_offset):
            self.looked_at += 1
            if self._hole_sizes[offset] >= size_bytes:
                return offset, self._hole_sizes[offset]
        raise AssertionError("the largest hole was large enough")

    def _carve(self, hole: int, hole_size: int, start: int, size_bytes: int) -> None:
        self._drop_hole(hole)
        if start > hole:
            self._add_hole(hole, start - hole)
        end, hole_end = start + size_bytes, hole + hole_size
        if end < hole_end:
            self._add_hole(end, hole_end - end)
        self._blocks[start] = size_bytes
        self.held_bytes += size_bytes

    def _release(self, offset: int, size_bytes: int) -> None:
        """Turn a range below the fence into a hole and join its neighbours."""
        end = min(offset + size_bytes, self._fence)
        if end <= offset:
            return
        index = bisect_left(self._by_offset, offset)
        self.looked_at += 2
        if index < len(self._by_offset) and self._by_offset[index] == end:
            size = self._hole_sizes[end]
            self._drop_hole(end)
            end += size
        if index:
            before = self._by_offset[index - 1]
            if before + self._hole_sizes[before] == offset:
                self._drop_hole(before)
                offset = before
        self._add_hole(offset, end - offset)

    def _add_hole(self, offset: int, size_bytes: int) -> None:
        self._hole_sizes[offset] = size_bytes
        insort(self._by_offset, offset)
        insort(self._by_size, (size_bytes, offset))
        self.free_bytes += size_bytes

    def _drop_hole(self, offset: int) -> None:
        size_bytes = self._hole_sizes.pop(offset)
        del self._by_offset[bisect_left(self._by_offset, offset)]
        del self._by_size[bisect_left(self._by_size, (size_bytes, offset))]
        self.free_bytes -= size_bytes

    def _rebuild_holes(self) -> None:
        self.free_bytes = 0
        self._hole_sizes.clear()
        self._by_offset.clear()
        self._by_size.clear()
        at = self.guard_bytes
        for offset, size in self.blocks():
            if at < min(offset, self._fence):
                self._add_hole(at, min(offset, self._fence) - at)
            at = offset + size
        if at < self._fence:
            self._add_hole(at, self._fence - at)
