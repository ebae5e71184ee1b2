"""Sampler: puts the engine's state into ring and store, once a second."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Protocol

from engine.decisions import Decision
from engine.errors import EngineError
from engine.ports import Clock
from engine.snapshot import Snapshot
from engine.units import NS_PER_MS, NS_PER_S
from ops.recent import Mark, Recent
from ops.sampling import chosen, marks, sample
from ops.time_machine import KeyframeSink, KeyframeTaker
from storage.samples import DecisionRecord, DeviceSample, ModelSample

PERIOD_NS = NS_PER_S
_LOG = logging.getLogger("millpond.sampler")


class Sampled(Protocol):
    """Be what a sampler looks at: an engine."""

    @property
    def clock(self) -> Clock:
        """Return the clock that its instants come from."""
        ...

    @property
    def start_wall_ns(self) -> int:
        """Return the wall time at that clock's zero."""
        ...

    def sample_truth(self) -> None:
        """Ask the devices what they hold themselves."""
        ...

    def snapshot(self) -> Snapshot:
        """Return the whole state as a value."""
        ...

    def drain_decisions(self) -> list[Decision]:
        """Return the decisions since the last call."""
        ...


class Sink(Protocol):
    """Be where samples are kept: a store."""

    def append(
        self,
        devices: Sequence[DeviceSample],
        models: Sequence[ModelSample],
        *,
        decisions: Sequence[DecisionRecord],
    ) -> None:
        """Take the samples; returns at once."""
        ...

    @property
    def keyframes(self) -> KeyframeSink:
        """Return where keyframes are kept."""
        ...


class Sampler:
    """Take a snapshot per second and keep the differences.

    It has a thread of its own because nothing else may delay it: a chart with
    a gap looks like an engine that stood still. A second that was missed is
    not made up for; the next row then covers both.
    """

    def __init__(self, engine: Sampled, sink: Sink, *, recent: Recent) -> None:
        """Remember how the engine stands now; `start` begins."""
        self._engine = engine
        self._sink = sink
        self._recent = recent
        self._before = engine.snapshot()
        self._keyframes = KeyframeTaker(sink.keyframes)
        self._trouble = ""
        self._lock = threading.Lock()
        self._must_stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="millpond-sampler")

    def start(self) -> None:
        """Begin to sample; how the memory stood before is the first keyframe."""
        at_ms = (self._engine.start_wall_ns + self._before.at_ns) // NS_PER_MS
        self._trouble = self._take_keyframe(self._before, at_ms)
        self._thread.start()

    def stop(self) -> None:
        """End the thread and keep what happened since its last second; idempotent."""
        if self._must_stop.is_set():
            return
        self._must_stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        self.tick()

    def tick(self) -> None:
        """Sample now; may be called by others than the sampler's own thread."""
        with self._lock:
            self._tick()

    def _tick(self) -> None:
        engine = self._engine
        trouble = self._sample_truth()
        after = engine.snapshot()
        if after.at_ns <= self._before.at_ns:
            return
        decisions = engine.drain_decisions()
        start_ns = engine.start_wall_ns
        at_ms = (start_ns + after.at_ns) // NS_PER_MS
        second = sample(self._before, after, at_ms=at_ms)
        trouble = self._take_keyframe(after, at_ms) or trouble
        self._before = after
        records = [
            DecisionRecord((start_ns + decision.at_ns) // NS_PER_MS, decision)
            for decision in chosen(decisions)
        ]
        trouble = self._append(second.devices, second.models, decisions=records) or trouble
        found = marks(decisions, start_wall_ns=start_ns)
        self._recent.add(second, (*found, *self._news(at_ms, trouble)))

    def _sample_truth(self) -> str:
        try:
            self._engine.sample_truth()
        except EngineError as error:
            return str(error)
        return ""

    def _take_keyframe(self, snapshot: Snapshot, at_ms: int) -> str:
        try:
            is_last = self._must_stop.is_set()
            self._keyframes.see(snapshot, at_ms=at_ms, is_last=is_last)
        except EngineError as error:
            return str(error)
        return ""

    def _append(
        self,
        devices: Sequence[DeviceSample],
        models: Sequence[ModelSample],
        *,
        decisions: Sequence[DecisionRecord],
    ) -> str:
        try:
            self._sink.append(devices, models, decisions=decisions)
        except EngineError as error:
            return str(error)
        return ""

    def _news(self, at_ms: int, trouble: str) -> tuple[Mark, ...]:
        """Return a mark where a trouble begins; as long as it is the same, say no more."""
        is_new, self._trouble = trouble != self._trouble, trouble
        if not (trouble and is_new):
            return ()
        _LOG.warning("sampling: %s", trouble)
        return (Mark(at_ms, "alert", trouble),)

    def _run(self) -> None:
        now_ns = self._engine.clock.now_ns
        next_ns = now_ns() + PERIOD_NS
        while not self._must_stop.wait(max(0, next_ns - now_ns()) / NS_PER_S):
            try:
                self.tick()
            except Exception:  # noqa: BLE001  # a second that cannot be kept is not the last
                _LOG.exception("sampling: this second is lost")
            next_ns = max(next_ns + PERIOD_NS, now_ns())
