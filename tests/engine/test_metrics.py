"""Tests of counters and of what the latency histogram keeps of its samples."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import StoreError
from engine.metrics import BUCKET_COUNT, SUB_BUCKETS, Counters, LatencyHistogram, rate_hz

DURATIONS = st.one_of(st.integers(0, 100), st.integers(0, 10**9), st.integers(0, 2**46 - 1))
SAMPLES = st.lists(DURATIONS, min_size=1, max_size=60)
SHARES = st.floats(0, 1)


def histogram(samples: list[int]) -> LatencyHistogram:
    found = LatencyHistogram()
    for ns in samples:
        found.record(ns)
    return found


@given(SAMPLES, SHARES)
def test_a_percentile_is_off_by_less_than_a_sixteenth(samples: list[int], share: float):
    true = sorted(samples)[max(1, math.ceil(share * len(samples))) - 1]
    found = histogram(samples).percentile_ns(share)
    assert abs(found - true) * SUB_BUCKETS <= true


@given(SAMPLES)
def test_count_sum_and_maximum_are_exact(samples: list[int]):
    found = histogram(samples)
    assert (found.count, found.sum_ns, found.max_ns) == (
        len(samples),
        sum(samples),
        max(samples),
    )
    assert found.percentile_ns(1) == max(samples)
    assert found.mean_ns == sum(samples) // len(samples)


@given(SAMPLES, SHARES, SHARES)
def test_percentiles_never_fall(samples: list[int], a: float, b: float):
    found = histogram(samples)
    assert found.percentile_ns(min(a, b)) <= found.percentile_ns(max(a, b))


@given(SAMPLES, SAMPLES)
def test_merging_is_recording_both(first: list[int], second: list[int]):
    merged = histogram(first)
    merged.merge(histogram(second))
    assert merged == histogram(first + second)


@given(SAMPLES, SAMPLES)
def test_a_difference_is_what_was_recorded_since(first: list[int], second: list[int]):
    found = histogram(first)
    earlier = found.copy()
    for ns in second:
        found.record(ns)
    since, alone = found.subtract(earlier), histogram(second)
    assert (since.count, since.sum_ns) == (alone.count, alone.sum_ns)
    assert 0 <= (since.max_ns - alone.max_ns) * SUB_BUCKETS <= alone.max_ns
    assert earlier == histogram(first)


@given(SAMPLES)
def test_bytes_come_back_as_they_went(samples: list[int]):
    found = histogram(samples)
    assert LatencyHistogram.from_bytes(found.to_bytes()) == found


@given(SAMPLES, DURATIONS)
def test_a_share_below_is_right_up_to_the_durations_own_bucket(samples: list[int], ns: int):
    found = histogram(samples)
    share = found.share_below(ns)
    near = ns // SUB_BUCKETS + 1
    assert share >= sum(s <= ns - near for s in samples) / len(samples) - 1e-9
    assert share <= sum(s < ns + near for s in samples) / len(samples) + 1e-9


def test_recording_a_count_is_recording_that_often():
    once = LatencyHistogram()
    once.record(5_000, 3)
    assert once == histogram([5_000] * 3)


def test_what_is_longer_than_the_last_bucket_counts_there():
    found = histogram([2**50, 2**46])
    assert found.max_ns == 2**50
    assert found.percentile_ns(1) == 2**50
    assert LatencyHistogram.from_bytes(found.to_bytes()) == found
    assert found.subtract(histogram([2**46])).max_ns == 2**50


def test_an_empty_histogram_answers_zero():
    empty = LatencyHistogram()
    assert empty.percentile_ns(0.99) == empty.mean_ns == 0
    assert empty.share_below(1000) == 0
    assert empty.subtract(empty.copy()) == empty
    assert LatencyHistogram.from_bytes(empty.to_bytes()) == empty


def test_a_typical_second_takes_few_bytes():
    found = histogram([20_000_000 + 37_000 * i for i in range(1000)])
    assert len(found.to_bytes()) < 80


@pytest.mark.parametrize(
    "stored", [b"", b"\x01", b"\x01\x01\x01", b"\x01\x80", b"\x00\x00\xff\x7f\x01"]
)
def test_bytes_that_are_no_histogram_are_refused(stored: bytes):
    with pytest.raises(StoreError, match="histogram"):
        LatencyHistogram.from_bytes(stored)


def test_the_largest_index_is_the_last_bucket():
    found = histogram([2**46 - 1])
    assert found._buckets[BUCKET_COUNT - 1] == 1


def test_counters_subtract_and_add_field_by_field():
    earlier = Counters(submitted=3, good=1)
    now = earlier.copy()
    now.submitted += 4
    now.loaded_bytes += 100
    assert now.minus(earlier) == Counters(submitted=4, loaded_bytes=100)
    assert earlier == Counters(submitted=3, good=1)
    assert now.minus(earlier).plus(earlier) == now


def test_a_rate_counts_per_second_and_is_zero_before_any_time_has_passed():
    assert rate_hz(30, 500_000_000) == 60
    assert rate_hz(30, 0) == 0
