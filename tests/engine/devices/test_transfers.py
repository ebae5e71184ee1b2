"""Transfers: every byte is copied once, and none is overwritten before."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from engine.devices.transfers import BOUNCE_BYTES, cut_load, cut_move, cut_seed
from engine.units import GIB, KIB, MIB


def test_a_load_is_cut_into_chunks_that_take_the_slots_in_turn() -> None:
    pieces = list(cut_load(70 * MIB, chunk_bytes=16 * MIB, slots=3))
    assert [piece.slot for piece in pieces] == [0, 1, 2, 0, 1]
    assert pieces[0].start == 0
    assert all(a.end == b.start for a, b in pairwise(pieces))
    assert pieces[-1].end == 70 * MIB


def test_a_load_smaller_than_a_chunk_is_one_piece() -> None:
    assert [(piece.start, piece.end) for piece in cut_load(512)] == [(0, 512)]


def play(offset: int, new_offset: int, size_bytes: int) -> bool:
    """Move numbered blocks as the plan says; return whether they arrive as they were."""
    unit = 64 * KIB
    memory = list(range((max(offset, new_offset) + size_bytes) // unit))
    wanted = memory[offset // unit : (offset + size_bytes) // unit]
    for piece in cut_move(offset, new_offset, size_bytes=size_bytes):
        source, target = piece.source // unit, piece.target // unit
        count = piece.size_bytes // unit
        if not piece.through_scratch:
            assert abs(piece.target - piece.source) >= piece.size_bytes, "they would overlap"
        memory[target : target + count] = memory[source : source + count]
    return memory[new_offset // unit : (new_offset + size_bytes) // unit] == wanted


@given(st.integers(0, 800), st.integers(0, 800), st.integers(1, 800))
def test_a_move_in_either_direction_brings_every_byte_across(
    offset: int, new_offset: int, size: int
) -> None:
    unit = 64 * KIB
    assert play(offset * unit, new_offset * unit, size * unit)


def test_a_short_shift_of_a_large_block_goes_through_scratch_in_few_pieces() -> None:
    pieces = list(cut_move(4 * MIB, 4 * MIB - 512, size_bytes=GIB))
    assert all(piece.through_scratch for piece in pieces)
    assert len(pieces) == GIB // BOUNCE_BYTES


def test_a_seed_fills_the_lease_and_leaves_room_for_small_tensors() -> None:
    large, small = cut_seed(GIB)
    assert large + small * MIB == GIB
    assert (large % (2 * MIB), small) == (0, 16)
    assert cut_seed(4 * MIB) == (0, 0)
