"""Owners: what a pool that stands alone knows of those who hold its bytes."""

from __future__ import annotations

from dataclasses import dataclass
from operator import index

from engine.errors import InputError


@dataclass(frozen=True, slots=True)
class Reload:
    """Say what getting bytes back costs, and what moving them costs.

    Attributes:
        fixed_ns: Of every load, however small.
        ns_per_byte: Of a load; 0.08 is 12.3 GB/s.
        move_ns_per_byte: Of a copy inside the range.
    """

    fixed_ns: int = 50_000_000
    ns_per_byte: float = 1e9 / 12.3e9
    move_ns_per_byte: float = 1e9 / 120e9


@dataclass(slots=True)
class Held:
    """Hold an owner's block and what is known of its use."""

    offset: int
    size_bytes: int
    serial: int
    used_at: int
    priority_class: int
    users: int = 0


@dataclass(slots=True)
class PoolCounts:
    """Count what happened since the pool was made."""

    granted: int = 0
    granted_bytes: int = 0
    evictions: int = 0
    moved_bytes: int = 0
    no_hole: int = 0


def whole_size(owner: str, size_bytes: int) -> int:
    """Return a size as a plain integer, whatever kind of integer it was.

    Raises:
        InputError: It is none, or not more than 0.
    """
    try:
        size = index(size_bytes)
    except TypeError:
        size = 0
    if size <= 0:
        raise InputError(
            f"{owner}: found a size of {size_bytes!r}, wanted a whole number of bytes above 0"
        )
    return size
