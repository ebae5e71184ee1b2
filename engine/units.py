"""Units: bytes and nanoseconds as integers, how they read, and chance as a hash of counters."""

from __future__ import annotations

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
NS_PER_US = 1_000
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000
_MASK = (1 << 64) - 1


def ms_to_ns(milliseconds: float) -> int:
    """Return milliseconds as whole nanoseconds."""
    return round(milliseconds * NS_PER_MS)


def ns_to_ms(nanoseconds: int) -> float:
    """Return nanoseconds as milliseconds, for the edges."""
    return nanoseconds / NS_PER_MS


def align_up(size_bytes: int, alignment: int) -> int:
    """Return the smallest multiple of `alignment` that is not below `size_bytes`."""
    return -(-size_bytes // alignment) * alignment


def format_bytes(size_bytes: int) -> str:
    """Return a size as people read it, in binary units: `12.3 MiB`, `512 B`."""
    size = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024 or unit == "GiB":
            break
        size /= 1024
    digits = 0 if unit == "B" or abs(size) >= 100 else 1
    return f"{size:.{digits}f} {unit}"


def format_ns(nanoseconds: int) -> str:
    """Return a time as people read it: `12.3 ms`, `850 µs`, `2.40 s`."""
    if abs(nanoseconds) >= NS_PER_S:
        return f"{nanoseconds / NS_PER_S:.2f} s"
    if abs(nanoseconds) >= NS_PER_MS:
        return f"{nanoseconds / NS_PER_MS:.1f} ms"
    return f"{nanoseconds / NS_PER_US:.0f} µs"


def counter_hash(*counters: int) -> int:
    """Return 64 well mixed bits for a tuple of counters, the same in every process.

    The core draws all chance from here, so that a replay draws the same.

    Source: Steele, Lea and Flood, Fast Splittable Pseudorandom Number
    Generators, 2014 (SplitMix64's finaliser).
    """
    mixed = 0x9E3779B97F4A7C15
    for counter in counters:
        mixed = (mixed + (counter & _MASK) + 0x9E3779B97F4A7C15) & _MASK
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        mixed ^= mixed >> 31
    return mixed


def counter_uniform(*counters: int) -> float:
    """Return a number from 0 (included) to 1 (excluded) for a tuple of counters."""
    return (counter_hash(*counters) >> 11) / (1 << 53)
