"""Demand: how often a model was wanted lately, as a count that fades."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp


@dataclass(slots=True)
class Demand:
    """Count a model's batches; an old one counts less, by e-fold per window.

    In steady traffic the count is the number of batches per window. So, times
    the time of a load, it is what an eviction is expected to cost in the next
    window if traffic stays as it was: an upper bound, because a model that
    came back stays for a while.

    Attributes:
        count: As it was at `at_ns`.
    """

    count: float = 0.0
    at_ns: int = 0

    def note(self, now_ns: int, window_ns: int) -> None:
        """Count one batch more."""
        self.count = self.at(now_ns, window_ns) + 1.0
        self.at_ns = now_ns

    def at(self, now_ns: int, window_ns: int) -> float:
        """Return the faded count.

        Args:
            window_ns: More than 0.
        """
        return self.count * exp((self.at_ns - now_ns) / window_ns)
