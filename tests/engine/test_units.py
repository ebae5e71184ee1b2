"""Tests of units, their texts, and chance as a hash."""

from __future__ import annotations

import pytest

from engine.units import (
    GIB,
    KIB,
    MIB,
    NS_PER_S,
    align_up,
    counter_hash,
    counter_uniform,
    format_bytes,
    format_ns,
    ms_to_ns,
    ns_to_ms,
)


def test_milliseconds_become_whole_nanoseconds_and_back():
    assert ms_to_ns(1.5) == 1_500_000
    assert ms_to_ns(0.1) == 100_000
    assert ns_to_ms(2_500_000) == 2.5


def test_a_size_is_aligned_up_and_never_down():
    assert [align_up(size, 512) for size in (0, 1, 512, 513)] == [0, 512, 512, 1024]
    assert align_up(7, 3) == 9


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (KIB, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (int(12.34 * MIB), "12.3 MiB"),
        (123 * MIB, "123 MiB"),
        (GIB - 1, "1.0 GiB"),
        (-3 * GIB // 2, "-1.5 GiB"),
        (2000 * GIB, "2.0 TiB"),
        (5000 * 1024 * GIB, "5000 TiB"),
    ],
)
def test_bytes_read_as_people_write_them(size: int, text: str):
    assert format_bytes(size) == text


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (999, "999 ns"),
        (1_500, "1.5 µs"),
        (4_200_000, "4.2 ms"),
        (999_960_000, "1.0 s"),
        (59 * NS_PER_S, "59.0 s"),
        (90 * NS_PER_S, "1.5 min"),
        (7200 * NS_PER_S, "2.0 h"),
    ],
)
def test_durations_read_as_people_write_them(ns: int, text: str):
    assert format_ns(ns) == text


def test_a_hash_of_counters_is_the_same_in_every_process():
    # The first number of SplitMix64 from the seed 0, as its authors publish it.
    assert counter_hash(0) == 0xE220A8397B1DCDAF
    assert counter_hash(1, 2) != counter_hash(2, 1)
    assert counter_hash(-1) == counter_hash(2**64 - 1)


def test_uniform_numbers_fill_their_range_evenly():
    numbers = [counter_uniform(7, serial) for serial in range(10_000)]
    assert 0 <= min(numbers) < max(numbers) < 1
    tenths = [sum(int(number * 10) == tenth for number in numbers) for tenth in range(10)]
    assert min(tenths) > 850
    assert max(tenths) < 1150
