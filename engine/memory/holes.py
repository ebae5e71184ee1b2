"""Holes: find the free range that fits, by size and by address."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable


class Holes:
    """Keep free ranges sorted by offset and by size; no two of them touch.

    A plain list kept sorted by `bisect` moves memory on every change, which
    for thousands of holes still costs less than any tree in pure Python.

    Attributes:
        free_bytes: Of all holes together.
        looked_at: Holes looked at so far; a binary search counts as its probes.
    """

    __slots__ = ("_by_size", "_ends", "_offsets", "free_bytes", "looked_at")

    def __init__(self) -> None:
        """Start without any."""
        self.looked_at = 0
        self.reset(())

    def __repr__(self) -> str:
        """Show the holes."""
        return f"Holes({self.by_offset()})"

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._offsets)

    def reset(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Start again with these ranges: (offset, end) ascending, none touching the next."""
        self._ends = dict(ranges)
        self._offsets = list(self._ends)
        self._by_size = sorted((end - offset, offset) for offset, end in self._ends.items())
        self.free_bytes = sum(size for size, _ in self._by_size)

    @property
    def largest_bytes(self) -> int:
        """Return the size of the largest; 0 if there is none."""
        return self._by_size[-1][0] if self._by_size else 0

    def by_offset(self) -> list[tuple[int, int]]:
        """Return (offset, size) of each, by offset."""
        return [(offset, self._ends[offset] - offset) for offset in self._offsets]

    def smallest(self, size_bytes: int) -> tuple[int, int] | None:
        """Return (offset, end) of the smallest that is large enough, the lowest of equals."""
        first = self._search_sizes((size_bytes, 0))
        if first == len(self._by_size):
            return None
        offset = self._by_size[first][1]
        return offset, self._ends[offset]

    def highest(self, size_bytes: int) -> tuple[int, int] | None:
        """Return (offset, end) of the highest that is large enough.

        Where few fit, it is the highest of these; where many fit, one of them
        is soon met from the top: about √n looks, a few in practice.
        """
        first = self._search_sizes((size_bytes, 0))
        fitting = len(self._by_size) - first
        if not fitting:
            return None
        if fitting * fitting <= len(self._by_size):
            self.looked_at += fitting
            offset = max(offset for _, offset in self._by_size[first:])
            return offset, self._ends[offset]
        for offset in reversed(self._offsets):
            self.looked_at += 1
            if self._ends[offset] - offset >= size_bytes:
                return offset, self._ends[offset]
        raise AssertionError("the list by size names a hole that fits")

    def around(self, offset: int) -> tuple[int, int] | None:
        """Return (offset, end) of the hole in which that byte lies; None if it is held."""
        index = self._search_offsets(offset + 1) - 1
        if index < 0 or self._ends[self._offsets[index]] <= offset:
            return None
        return self._offsets[index], self._ends[self._offsets[index]]

    def carve(self, start: int, end: int) -> None:
        """Take a range out of the hole around it; what is left on either side stays one."""
        around = self.around(start)
        assert around and start < end <= around[1], "a range is carved from one hole"
        hole, hole_end = around
        self._remove(hole)
        if hole < start:
            self._insert(hole, start)
        if end < hole_end:
            self._insert(end, hole_end)

    def add(self, start: int, end: int) -> None:
        """Make a held range a hole, one with its neighbours; an empty range is none."""
        if start >= end:
            return
        index = self._search_offsets(start)
        if index < len(self._offsets) and self._offsets[index] == end:
            end = self._ends[end]
            self._remove(self._offsets[index])
        if index and self._ends[self._offsets[index - 1]] == start:
            start = self._offsets[index - 1]
            self._remove(start)
        self._insert(start, end)

    def _insert(self, offset: int, end: int) -> None:
        self._offsets.insert(self._search_offsets(offset), offset)
        self.looked_at += len(self._by_size).bit_length()
        insort(self._by_size, (end - offset, offset))
        self._ends[offset] = end
        self.free_bytes += end - offset

    def _remove(self, offset: int) -> None:
        size = self._ends.pop(offset) - offset
        del self._offsets[self._search_offsets(offset)]
        del self._by_size[self._search_sizes((size, offset))]
        self.free_bytes -= size

    def _search_sizes(self, key: tuple[int, int]) -> int:
        self.looked_at += len(self._by_size).bit_length()
        return bisect_left(self._by_size, key)

    def _search_offsets(self, offset: int) -> int:
        self.looked_at += len(self._offsets).bit_length()
        return bisect_left(self._offsets, offset)
