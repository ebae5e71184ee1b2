"""Words: figures as people read them, three digits and a unit that fits."""

from __future__ import annotations


def figure(value: float) -> str:
    """Return a number with three significant digits and no exponent."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}".rstrip("0").rstrip(".") or "0"


def milliseconds(value: float) -> str:
    """Return a time given in milliseconds: `820 µs`, `12.3 ms`, `2.42 s`."""
    if abs(value) >= 1000:
        return f"{figure(value / 1000)} s"
    return f"{figure(value)} ms" if abs(value) >= 1 else f"{figure(value * 1000)} µs"
