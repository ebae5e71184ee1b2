"""Fragmentation: how much of the free or the held bytes is of no use."""

from __future__ import annotations

from collections.abc import Iterable


def external(free_bytes: int, largest_hole_bytes: int) -> float:
    """Return the share of the free bytes that lies outside the largest hole.

    Where leases are a budget of the same bytes, fewer may be free than the
    largest hole has: then nothing that is free is out of reach.

    Args:
        free_bytes: May be negative while a pool shrinks.

    Returns:
        0 (one hole, or nothing free) up to almost 1.
    """
    if free_bytes <= 0:
        return 0.0
    return max(0.0, 1.0 - largest_hole_bytes / free_bytes)


def unusable(hole_bytes: Iterable[int], size_bytes: int) -> float:
    """Return the share of the free bytes that blocks of one size cannot use.

    An operator can act on this one: it says how badly the pool is cut for the
    block that is wanted next, where `external` only says that it is cut.

    Args:
        hole_bytes: Sizes of the holes, in any order.
        size_bytes: Size of the blocks, more than 0.

    Returns:
        0 (every byte fits into some block) to 1 (no block fits, or nothing is free).

    Source: after Gorman's unusable free space index; Linux, mm/vmstat.c.
    """
    assert size_bytes > 0, f"a block has a size, not {size_bytes}"
    free = wasted = 0
    for hole in hole_bytes:
        free += hole
        wasted += hole % size_bytes
    return wasted / free if free else 1.0


def internal(granted_bytes: int, needed_bytes: int) -> float:
    """Return the share of the granted bytes that nobody needs.

    Returns:
        0 (all needed, nothing granted, or a lease that was overshot) to 1.
    """
    if granted_bytes <= 0:
        return 0.0
    return max(0.0, (granted_bytes - needed_bytes) / granted_bytes)
