"""Transfers: how a copy is cut into chunks, so that staging and overlap come out right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engine.units import MIB

RING_SLOTS = 4
RING_CHUNK_BYTES = 32 * MIB  # a power of two: pinned memory is rounded up to one
BOUNCE_BYTES = 16 * MIB
_SHORT_BYTES = 4 * MIB  # below this shift, copies as long as the shift would be too many


@dataclass(frozen=True, slots=True)
class Chunk:
    """Be one piece of a load: these bytes of the block, through that slot of the ring."""

    start: int
    end: int
    slot: int


@dataclass(frozen=True, slots=True)
class Shift:
    """Be one piece of a move: so many bytes from one offset to another.

    Attributes:
        through_scratch: Source and target overlap; copy to a scratch buffer first.
    """

    source: int
    target: int
    size_bytes: int
    through_scratch: bool


def cut_load(
    size_bytes: int, *, chunk_bytes: int = RING_CHUNK_BYTES, slots: int = RING_SLOTS
) -> Iterator[Chunk]:
    """Yield the pieces of a load in order; slots are taken in turn.

    Whoever fills a slot waits for the copy out of it that was made a round ago.
    """
    assert chunk_bytes & (chunk_bytes - 1) == 0, "pinned memory comes in powers of two"
    for number, start in enumerate(range(0, size_bytes, chunk_bytes)):
        yield Chunk(start, min(start + chunk_bytes, size_bytes), number % slots)


def cut_move(offset: int, new_offset: int, *, size_bytes: int) -> Iterator[Shift]:
    """Yield the pieces of a move in an order in which none overwrites what is still to come.

    A copy whose source and target overlap is not allowed on a device. So no
    piece is longer than the distance; for short distances, where that would
    be very many, pieces go through a scratch buffer instead.
    """
    distance = abs(new_offset - offset)
    through_scratch = distance < min(_SHORT_BYTES, size_bytes)
    longest = BOUNCE_BYTES if through_scratch else max(1, distance)
    starts = range(0, size_bytes, longest)
    for start in starts if new_offset < offset else reversed(starts):
        length = min(longest, size_bytes - start)
        yield Shift(offset + start, new_offset + start, length, through_scratch)


def cut_seed(lease_bytes: int) -> tuple[int, int]:
    """Return how a lease is seeded: bytes of one large block, number of blocks of 1 MiB.

    torch serves requests above 1 MiB from large segments and smaller ones
    from segments of 2 MiB, and never mixes them; blocks that were taken once
    are handed out again without asking the driver.
    """
    pages = lease_bytes // (2 * MIB)
    small = min(8, pages // 4)
    large = pages - small
    return (large * 2 * MIB if large >= 5 else 0), 2 * small
