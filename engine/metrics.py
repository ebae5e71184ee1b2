"""Metrics: counters and the mergeable latency histogram."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

SUB_BITS = 3
SUB = 1 << SUB_BITS
BUCKETS = (64 - SUB_BITS) * SUB


@dataclass(slots=True)
class Counters:
    """Count what became of a model's requests and weights since the start."""

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
    evictions: int = 0
    loaded_bytes: int = 0

    def copy(self) -> Counters:
        """Return an independent copy."""
        return replace(self)

    def minus(self, earlier: Counters) -> Counters:
        """Return what was counted since an earlier copy."""
        return Counters(
            **{f.name: getattr(self, f.name) - getattr(earlier, f.name) for f in fields(self)}
        )


class LatencyHistogram:
    """Count nanoseconds in buckets that grow with the value; sums of histograms are exact.

    Below 16 ns every value has its bucket; above, every octave has 8, so that
    a percentile is wrong by at most one part in 8, and by interpolation by
    about one in 16. Buckets grow as they are needed.
    """

    __slots__ = ("_counts", "count", "max_ns", "sum_ns")

    def __init__(self) -> None:
        """Start empty."""
        self._counts: list[int] = []
        self.count = 0
        self.sum_ns = 0
        self.max_ns = 0

    def __repr__(self) -> str:
        """Show what matters at a glance."""
        return f"LatencyHistogram({self.count} values, max {self.max_ns} ns)"

    def __eq__(self, other: object) -> bool:
        """Compare counts, sum and maximum."""
        return isinstance(other, LatencyHistogram) and self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment]  # it changes

    def record(self, ns: int) -> None:
        """Count one value of at least 0."""
        shift = ns.bit_length() - SUB_BITS - 1
        index = ns if shift <= 0 else (shift << SUB_BITS) + (ns >> shift)
        try:
            self._counts[index] += 1
        except IndexError:
            self._grow(index)
            self._counts[index] += 1
        self.count += 1
        self.sum_ns += ns
        if ns > self.max_ns:
            self.max_ns = ns

    def _grow(self, index: int) -> None:
        self._counts.extend([0] * (index + SUB - len(self._counts)))

    def copy(self) -> LatencyHistogram:
        """Return an independent copy."""
        made = LatencyHistogram()
        made._counts = self._counts.copy()
        made.count, made.sum_ns, made.max_ns = self.count, self.sum_ns, self.max_ns
        return made

    def merge(self, other: LatencyHistogram) -> None:
        """Add all values of another histogram."""
        if len(other._counts) > len(self._counts):
            self._grow(len(other._counts))
        for index, count in enumerate(other._counts):
            self._counts[index] += count
        self.count += other.count
        self.sum_ns += other.sum_ns
        self.max_ns = max(self.max_ns, other.max_ns)

    def minus(self, earlier: LatencyHistogram) -> LatencyHistogram:
        """Return the values counted since an earlier copy; the maximum is known by bucket."""
        made = self.copy()
        for index, count in enumerate(earlier._counts):
            made._counts[index] -= count
        made.count -= earlier.count
        made.sum_ns -= earlier.sum_ns
        highest = max((index for index, _ in made._filled()), default=None)
        made.max_ns = 0 if highest is None else min(self.max_ns, _edges(highest)[1])
        return made

    def percentile_ns(self, share: float) -> int:
        """Return the value that so large a share of all values does not exceed; 0 when empty.

        Args:
            share: 0 to 1.
        """
        if not self.count:
            return 0
        wanted = share * self.count
        seen = 0
        for index, count in self._filled():
            if seen + count >= wanted:
                low, high = _edges(index)
                inside = low + (high - low) * max(0.0, wanted - seen) / count
                return min(self.max_ns, int(inside))
            seen += count
        return self.max_ns

    def share_below(self, ns: int) -> float:
        """Return the share of values up to `ns`, interpolated in its bucket; 1 when empty."""
        if not self.count:
            return 1.0
        below = 0.0
        for index, count in self._filled():
            low, high = _edges(index)
            if high <= ns:
                below += count
            elif low < ns:
                below += count * (ns - low) / (high - low)
        return below / self.count

    def mean_ns(self) -> float:
        """Return the exact mean; 0 when empty."""
        return self.sum_ns / self.count if self.count else 0.0

    def to_bytes(self) -> bytes:
        """Return it compactly: sum, maximum, then (gap, count) of every filled bucket."""
        packed = bytearray()
        for number in (self.sum_ns, self.max_ns):
            _pack(packed, number)
        last = 0
        for index, count in self._filled():
            _pack(packed, index - last)
            _pack(packed, count)
            last = index
        return bytes(packed)

    @classmethod
    def from_bytes(cls, packed: bytes) -> LatencyHistogram:
        """Read what `to_bytes` wrote."""
        numbers = list(_unpack(packed))
        made = cls()
        if not numbers:
            return made
        made.sum_ns, made.max_ns = numbers[0], numbers[1]
        index = 0
        for gap, count in zip(numbers[2::2], numbers[3::2], strict=True):
            index += gap
            if index >= len(made._counts):
                made._grow(index)
            made._counts[index] = count
            made.count += count
        return made

    def _filled(self) -> Iterator[tuple[int, int]]:
        return ((index, count) for index, count in enumerate(self._counts) if count)


def _edges(index: int) -> tuple[int, int]:
    """Return the least value of a bucket and that of the next."""
    if index < 2 * SUB:
        return index, index + 1
    shift = (index >> SUB_BITS) - 1
    low = (index - (shift << SUB_BITS)) << shift
    return low, low + (1 << shift)


def _pack(packed: bytearray, number: int) -> None:
    """Append a number as 7-bit groups, the lowest first."""
    while number > 127:
        packed.append(number & 127 | 128)
        number >>= 7
    packed.append(number)


def _unpack(packed: bytes) -> Iterator[int]:
    number = shift = 0
    for byte in packed:
        number |= (byte & 127) << shift
        shift += 7
        if not byte & 128:
            yield number
            number = shift = 0
