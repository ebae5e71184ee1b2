"""Tally: what became of a load's requests, counted without clock or thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from engine.metrics import LatencyHistogram
from engine.units import NS_PER_MS

Outcome = Literal["completed", "failed", "refused", "expired", "cancelled"]
OUTCOMES: tuple[Outcome, ...] = ("completed", "failed", "refused", "expired", "cancelled")
SLIP_LIMIT_NS = 100 * NS_PER_MS
"""A generator that is later than this for one request in a hundred is the bottleneck itself."""


@dataclass(frozen=True, slots=True)
class LoadFigures:
    """Show how a load stands.

    `offered = sent + dropped`, `sent` = the five outcomes + `in_flight`. A result
    counts as in flight until it is scored.

    Attributes:
        dropped: Never sent, because too many were under way already.
        latency: From intended arrival to result, of completed requests.
        slip: From intended arrival to sending.
        is_valid: The generator kept up: nothing dropped, and 99 % left within 100 ms.
        scores: Means by name over all scored results.
        error: The latest error's text, "" if there was none.
    """

    offered: int
    sent: int
    dropped: int
    completed: int
    failed: int
    refused: int
    expired: int
    cancelled: int
    in_flight: int
    latency: LatencyHistogram
    slip: LatencyHistogram
    is_valid: bool
    scores: Mapping[str, float]
    error: str


class Tally:
    """Count; whoever uses it from several threads locks around it."""

    def __init__(self) -> None:
        """Start at 0."""
        self.in_flight = 0
        self._dropped = 0
        self._ended: dict[Outcome, int] = dict.fromkeys(OUTCOMES, 0)
        self._latency = LatencyHistogram()
        self._slip = LatencyHistogram()
        self._scores: dict[str, tuple[float, int]] = {}
        self._error = ""

    def dropped(self) -> None:
        """Count an arrival that was not sent."""
        self._dropped += 1

    def sent(self, intended_ns: int, sent_ns: int) -> None:
        """Count a request on its way, and how late it left."""
        self.in_flight += 1
        self._slip.record(max(0, sent_ns - intended_ns))

    def ended(
        self, outcome: Outcome, intended_ns: int, *, now_ns: int, error: str = ""
    ) -> None:
        """Count a request that is through."""
        assert self.in_flight > 0, "what ends was sent"
        self.in_flight -= 1
        self._ended[outcome] += 1
        if outcome == "completed":
            self._latency.record(max(0, now_ns - intended_ns))
        self._error = error or self._error

    def scored(self, scores: Mapping[str, float]) -> None:
        """Add one result's scores to the means."""
        for name, value in scores.items():
            total, count = self._scores.get(name, (0.0, 0))
            self._scores[name] = (total + value, count + 1)

    def note_error(self, error: str) -> None:
        """Keep the text of an error that no request answers for."""
        self._error = error

    def figures(self) -> LoadFigures:
        """Return everything as a value that does not change any more."""
        sent = self._slip.count
        return LoadFigures(
            offered=sent + self._dropped,
            sent=sent,
            dropped=self._dropped,
            in_flight=self.in_flight,
            latency=self._latency.copy(),
            slip=self._slip.copy(),
            is_valid=not self._dropped and self._slip.percentile_ns(0.99) <= SLIP_LIMIT_NS,
            scores={name: total / count for name, (total, count) in self._scores.items()},
            error=self._error,
            **self._ended,
        )
