"""Clocks: the machine's monotonic one, and one that stands where it is put."""

from __future__ import annotations

import time


class MonotonicClock:
    """Count nanoseconds from an arbitrary start; never runs backwards.

    `now_ns` is the system's own function: it is called several times per request.
    """

    now_ns = staticmethod(time.monotonic_ns)


class VirtualClock:
    """Stand at an instant until it is moved; for simulations and tests."""

    __slots__ = ("_now_ns",)

    def __init__(self, now_ns: int = 0) -> None:
        """Start at that instant."""
        self._now_ns = now_ns

    def now_ns(self) -> int:
        """Return the present instant."""
        return self._now_ns

    def move_to(self, now_ns: int) -> None:
        """Let time pass.

        Args:
            now_ns: Never before the present instant.
        """
        assert now_ns >= self._now_ns, "time never runs backwards"
        self._now_ns = now_ns
