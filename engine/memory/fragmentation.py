"""Fragmentation: how much of the free memory cannot be used, in three figures."""

from __future__ import annotations

from collections.abc import Iterable


def external(free_bytes: int, largest_hole_bytes: int) -> float:
    """Return 1 - largest hole / free bytes; 0 when nothing is free."""
    return 1 - largest_hole_bytes / free_bytes if free_bytes > 0 else 0.0


def unusable(holes: Iterable[int], size_bytes: int) -> float:
    """Return the share of the free bytes that blocks of one size cannot use.

    Args:
        holes: Sizes of the free blocks.
        size_bytes: More than 0.

    Returns:
        (free - sum of floor(hole / size) * size) / free; 1 when nothing is free.
    """
    assert size_bytes > 0, "a block has a size"
    free = usable = 0
    for hole in holes:
        free += hole
        usable += hole // size_bytes * size_bytes
    return (free - usable) / free if free else 1.0


def internal(granted_bytes: int, needed_bytes: int) -> float:
    """Return the share of granted bytes that nobody needs; 0 when nothing is granted."""
    return (granted_bytes - needed_bytes) / granted_bytes if granted_bytes > 0 else 0.0
