"""Event log: keeps the inputs of a core, so that the same run can be had again."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace

from engine.decisions import Decision
from engine.events import Event, Submitted


class EventLog:
    """Record every input with its instant, and every decision, as a driver's recorder.

    A core owns and changes the requests that it is given; so the log keeps
    copies, and gives out copies.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._entries: list[tuple[Event, int]] = []
        self.decisions: list[Decision] = []

    def __len__(self) -> int:
        """Return the number of inputs."""
        return len(self._entries)

    def event(self, event: Event, now_ns: int) -> None:
        """Take note of an input before the core sees it."""
        self._entries.append((_own(event), now_ns))

    def decision(self, decision: Decision) -> None:
        """Take note of a decision."""
        self.decisions.append(decision)

    def entries(self, start: int = 0) -> Iterator[tuple[Event, int]]:
        """Yield the inputs from an index on, to be given to a core."""
        return ((_own(event), now_ns) for event, now_ns in self._entries[start:])


def _own(event: Event) -> Event:
    return replace(event, request=copy(event.request)) if type(event) is Submitted else event
