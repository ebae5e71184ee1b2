"""Metrics: counters and latency histograms that can be added, subtracted and stored."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Self

from engine.errors import StoreError
from engine.units import NS_PER_S

SUB_BUCKETS = 16
BUCKET_COUNT = 688
"""Buckets up to 2**46 ns, 19.5 hours; what is longer counts in the last one."""

_EXACT_BELOW = 2 * SUB_BUCKETS
_SUB_BITS = SUB_BUCKETS.bit_length() - 1
_SHIFT_BASE = _SUB_BITS + 1


class LatencyHistogram:
    """Count durations in buckets whose width grows with the duration.

    16 buckets to the octave: below 32 ns every nanosecond has its own, above
    it a bucket is at most 1/16 of its lower edge wide. So a percentile is off
    by less than 6.25 % of the true sample, however the samples lie, while a
    histogram takes the same few kilobytes for ten samples or a billion.
    Histograms of two seconds, devices or runs add up without a loss.

    Attributes:
        count: Samples.
        sum_ns: Of all samples, exact.
        max_ns: The largest sample; exact unless the histogram is a difference.
    """

    __slots__ = ("_buckets", "count", "max_ns", "sum_ns")

    def __init__(self) -> None:
        """Start empty."""
        self._buckets = [0] * BUCKET_COUNT
        self.count = 0
        self.sum_ns = 0
        self.max_ns = 0

    def __repr__(self) -> str:
        """Show the count and two percentiles."""
        p50, p99 = self.percentile_ns(0.5), self.percentile_ns(0.99)
        return f"LatencyHistogram(count={self.count}, p50_ns={p50}, p99_ns={p99})"

    def __eq__(self, other: object) -> bool:
        """Return whether both hold the same."""
        if not isinstance(other, LatencyHistogram):
            return NotImplemented
        return self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment]  # it changes; this is how Python says so

    @property
    def mean_ns(self) -> int:
        """Return the mean, exact to the nanosecond below; 0 if it is empty."""
        return self.sum_ns // self.count if self.count else 0

    def record(self, ns: int, count: int = 1) -> None:
        """Count a duration.

        This runs for every request, so it is written out and calls nothing
        but `bit_length`; `_index` says the same in readable form.

        Args:
            ns: 0 or more.
            count: How many samples of that duration.
        """
        if ns < _EXACT_BELOW:
            assert ns >= 0, f"a duration is not negative: {ns}"
            self._buckets[ns] += count
        else:
            shift = ns.bit_length() - _SHIFT_BASE
            try:
                self._buckets[(shift << _SUB_BITS) + (ns >> shift)] += count
            except IndexError:
                self._buckets[-1] += count
        self.count += count
        self.sum_ns += ns * count
        if ns > self.max_ns:
            self.max_ns = ns

    def copy(self) -> LatencyHistogram:
        """Return a histogram that is the same and shares nothing with this one."""
        same = LatencyHistogram.__new__(LatencyHistogram)
        same._buckets = self._buckets.copy()
        same.count = self.count
        same.sum_ns = self.sum_ns
        same.max_ns = self.max_ns
        return same

    def merge(self, other: LatencyHistogram) -> None:
        """Add all samples of another histogram, as if they had been recorded here."""
        mine, theirs = self._buckets, other._buckets
        self._buckets = [a + b for a, b in zip(mine, theirs, strict=True)]
        self.count += other.count
        self.sum_ns += other.sum_ns
        self.max_ns = max(self.max_ns, other.max_ns)

    def subtract(self, earlier: LatencyHistogram) -> LatencyHistogram:
        """Return what was recorded since an earlier copy of this histogram.

        Returns:
            The difference; its largest sample is known to its bucket only.
        """
        since = LatencyHistogram()
        now, then = self._buckets, earlier._buckets
        since._buckets = [a - b for a, b in zip(now, then, strict=True)]
        assert min(since._buckets) >= 0, "what is subtracted is an earlier copy"
        since.count = self.count - earlier.count
        since.sum_ns = self.sum_ns - earlier.sum_ns
        last = max((i for i, count in enumerate(since._buckets) if count), default=-1)
        if last == BUCKET_COUNT - 1:
            since.max_ns = self.max_ns
        elif last >= 0:
            since.max_ns = min(self.max_ns, sum(_bucket(last)) - 1)
        return since

    def percentile_ns(self, share: float) -> int:
        """Return the duration that a share of the samples does not exceed.

        The sample of that rank is looked for; inside its bucket the samples
        are taken to lie evenly.

        Args:
            share: 0 to 1; 0.99 for the 99th percentile.

        Returns:
            Less than 6.25 % off the true sample (nearest rank); 0 if the
            histogram is empty.
        """
        assert 0 <= share <= 1, f"a share of the samples, not {share}"
        rank = max(1, math.ceil(share * self.count))
        if rank >= self.count:
            return self.max_ns
        before = 0
        for index, count in enumerate(self._buckets):
            if before + count >= rank:
                low_ns, width_ns = _bucket(index)
                # Each of its samples stands in the middle of its slice of the bucket.
                inside = width_ns * (2 * (rank - before) - 1) // (2 * count)
                return min(low_ns + inside, self.max_ns)
            before += count
        raise AssertionError("the buckets hold as many samples as were counted")

    def share_below(self, ns: int) -> float:
        """Return the share of the samples that are shorter than a duration.

        Inside the duration's own bucket the samples are taken to lie evenly.

        Returns:
            0 to 1; 0 if the histogram is empty.
        """
        if not self.count or ns <= 0:
            return 0.0
        if ns > self.max_ns:
            return 1.0
        index = _index(ns)
        low_ns, width_ns = _bucket(index)
        inside = self._buckets[index] * min(1.0, (ns - low_ns) / width_ns)
        return (sum(self._buckets[:index]) + inside) / self.count

    def to_bytes(self) -> bytes:
        """Return it in a short form for the store: some 2 bytes for each bucket in use.

        LEB128 numbers: sum, maximum, then for every bucket in use the distance
        from the one before and its count.
        """
        out = bytearray()
        _put(out, self.sum_ns)
        _put(out, self.max_ns)
        before = 0
        for index, count in enumerate(self._buckets):
            if count:
                _put(out, index - before)
                _put(out, count)
                before = index
        return bytes(out)

    @classmethod
    def from_bytes(cls, stored: bytes) -> Self:
        """Return the histogram that `to_bytes` wrote.

        Raises:
            StoreError: The bytes are not a histogram's.
        """
        found = cls()
        numbers = list(_numbers(stored))
        if len(numbers) < 2 or len(numbers) % 2:
            raise StoreError(f"histogram: found {len(numbers)} numbers, wanted 2 and pairs")
        found.sum_ns, found.max_ns = numbers[:2]
        index = 0
        for step, count in zip(numbers[2::2], numbers[3::2], strict=True):
            index += step
            if index >= BUCKET_COUNT:
                raise StoreError(f"histogram: found bucket {index} of {BUCKET_COUNT}")
            found._buckets[index] += count
            found.count += count
        return found


def _index(ns: int) -> int:
    """Return the bucket of a duration: its leading 5 bits and how far they are shifted."""
    shift = max(0, ns.bit_length() - _SHIFT_BASE)
    return min(BUCKET_COUNT - 1, (shift << _SUB_BITS) + (ns >> shift))


def _bucket(index: int) -> tuple[int, int]:
    """Return the lower edge and the width of a bucket in nanoseconds."""
    if index < _EXACT_BELOW:
        return index, 1
    shift = (index >> _SUB_BITS) - 1
    return (SUB_BUCKETS + index % SUB_BUCKETS) << shift, 1 << shift


def _put(out: bytearray, number: int) -> None:
    """Append a number, 7 bits to the byte, the lowest first."""
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


def _numbers(stored: bytes) -> Iterator[int]:
    number = shift = 0
    for byte in stored:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            yield number
            number = shift = 0
    if shift:
        raise StoreError("histogram: the last number is cut off")


@dataclass(slots=True)
class Counters:
    """Count what happened to one model, or to one pipeline, since the start.

    They only ever grow; a second's worth is the difference of two copies.

    Attributes:
        submitted: Requests that came in, the refused ones included.
        items_completed: Items of batches that ended well.
        good: Completed requests that met their SLO.
        loads: Loads that ended well.
    """

    submitted: int = 0
    completed: int = 0
    failed: int = 0
    refused: int = 0
    expired: int = 0
    cancelled: int = 0
    items_completed: int = 0
    batches: int = 0
    good: int = 0
    loads: int = 0
    loaded_bytes: int = 0
    evictions: int = 0

    def copy(self) -> Counters:
        """Return counters that are the same and share nothing with these."""
        return replace(self)

    def minus(self, earlier: Counters) -> Counters:
        """Return what was counted since an earlier copy."""
        since = Counters()
        for name in _COUNTER_NAMES:
            setattr(since, name, getattr(self, name) - getattr(earlier, name))
        return since

    def plus(self, other: Counters) -> Counters:
        """Return what both counted together, such as the total of several models."""
        total = Counters()
        for name in _COUNTER_NAMES:
            setattr(total, name, getattr(self, name) + getattr(other, name))
        return total


_COUNTER_NAMES = tuple(field.name for field in fields(Counters))


def rate_hz(count: int, elapsed_ns: int) -> float:
    """Return events per second: goodput from `good`, throughput from `completed`.

    Returns:
        0 if no time has passed.
    """
    return count * NS_PER_S / elapsed_ns if elapsed_ns > 0 else 0.0
