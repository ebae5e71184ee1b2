"""Units: bytes and nanoseconds as ints, their texts, and chance as a hash of counters."""

from __future__ import annotations

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

NS_PER_US = 1_000
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000

_BYTE_STEPS = ((KIB, "B"), (MIB, "KiB"), (GIB, "MiB"), (1024 * GIB, "GiB"), (0, "TiB"))
_NS_STEPS = (
    (NS_PER_US, "ns"),
    (NS_PER_MS, "µs"),
    (NS_PER_S, "ms"),
    (60 * NS_PER_S, "s"),
    (3600 * NS_PER_S, "min"),
    (0, "h"),
)
_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def ms_to_ns(ms: float) -> int:
    """Return milliseconds as nanoseconds.

    People type milliseconds; the engine counts whole nanoseconds.
    """
    return round(ms * NS_PER_MS)


def ns_to_ms(ns: int) -> float:
    """Return nanoseconds as milliseconds, for charts and exports."""
    return ns / NS_PER_MS


def align_up(size: int, alignment: int) -> int:
    """Return the smallest multiple of the alignment that is not below the size.

    Args:
        alignment: More than 0; need not be a power of two.
    """
    return -(-size // alignment) * alignment


def format_bytes(size_bytes: int) -> str:
    """Return bytes as a short text such as `12.3 MiB`.

    Binary units, at most three digits that matter up to 999, so that a table
    of sizes can be compared at a glance.
    """
    return _format(size_bytes, _BYTE_STEPS)


def format_ns(ns: int) -> str:
    """Return nanoseconds as a short text such as `4.2 ms`."""
    return _format(ns, _NS_STEPS)


def _format(value: int, steps: tuple[tuple[int, str], ...]) -> str:
    """Write a value in the largest unit of which it holds at least one.

    Args:
        steps: (size of the next larger unit, name of this one), ascending; the
            last one's next unit is 0.
    """
    sign, value = ("-", -value) if value < 0 else ("", value)
    unit = 1
    for above, name in steps:
        if unit == 1 and value < above:
            return f"{sign}{value} {name}"
        scaled = value / unit
        text = f"{scaled:.1f}" if scaled < 99.95 else f"{scaled:.0f}"
        # Compared as it will be read: 1023.7 KiB is written 1.0 MiB, never 1024 KiB.
        if not above or float(text) < above // unit:
            return f"{sign}{text} {name}"
        unit = above
    raise AssertionError("the last unit takes every value")


def counter_hash(*counters: int) -> int:
    """Return 64 bits that look random and depend on nothing but the arguments.

    The core has no chance: where a choice should look like one (a sample of
    decisions, a jitter) it hashes serial numbers, and every run is the same.

    Source: Steele, Lea and Flood, Fast Splittable Pseudorandom Number
    Generators, 2014 (the mixing step of SplitMix64).
    """
    mixed = 0
    for counter in counters:
        mixed = ((mixed ^ (counter & _MASK)) + _GOLDEN) & _MASK
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        mixed ^= mixed >> 31
    return mixed


def counter_uniform(*counters: int) -> float:
    """Return a number from [0, 1) that depends on nothing but the arguments.

    53 bits of the counters' hash: every double of that grid is as likely as the next.
    """
    return (counter_hash(*counters) >> 11) * 2.0**-53
