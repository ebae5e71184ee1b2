"""Recent: the last quarter of an hour in memory, so that live pages ask no store."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from storage.samples import DeviceSample, ModelSample

KEPT_SECONDS = 900
KEPT_MARKS = 2000
"""More than a chart can show; a storm of evictions must not fill the memory."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Name something that a chart should point out at its instant."""

    at_ms: int
    kind: Literal["policy", "evict", "load", "alert"]
    text: str


class Second(NamedTuple):
    """Hold what one second of sampling gave."""

    at_ms: int
    devices: tuple[DeviceSample, ...]
    models: tuple[ModelSample, ...]


class Recent:
    """Keep the samples of the last 15 minutes and the marks among them.

    One sampler adds, any number of pages read. What they get are tuples of
    frozen values that nobody changes any more.

    Attributes:
        tick: Counts the seconds added; who caches what it drew compares it.
    """

    def __init__(self) -> None:
        """Start empty."""
        self.tick = 0
        self._lock = threading.Lock()
        self._seconds: deque[Second] = deque(maxlen=KEPT_SECONDS)
        self._marks: deque[Mark] = deque(maxlen=KEPT_MARKS)

    def add(self, second: Second, marks: Sequence[Mark] = ()) -> None:
        """Take one second's samples and the marks since the one before."""
        with self._lock:
            self._seconds.append(second)
            self._marks.extend(marks)
            self.tick += 1

    def devices(self, seconds: float = KEPT_SECONDS) -> tuple[DeviceSample, ...]:
        """Return the devices' samples of the last so many seconds, oldest first."""
        return tuple(row for second in self._last(seconds) for row in second.devices)

    def models(self, seconds: float = KEPT_SECONDS) -> tuple[ModelSample, ...]:
        """Return the models' samples of the last so many seconds, oldest first."""
        return tuple(row for second in self._last(seconds) for row in second.models)

    def marks(self, seconds: float = KEPT_SECONDS) -> tuple[Mark, ...]:
        """Return the marks of the last so many seconds, oldest first."""
        with self._lock:
            since_ms = self._newest_ms() - int(seconds * 1000)
            return tuple(mark for mark in self._marks if mark.at_ms > since_ms)

    def _last(self, seconds: float) -> list[Second]:
        with self._lock:
            since_ms = self._newest_ms() - int(seconds * 1000)
            return [second for second in self._seconds if second.at_ms > since_ms]

    def _newest_ms(self) -> int:
        return self._seconds[-1].at_ms if self._seconds else 0
