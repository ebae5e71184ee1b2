"""Live: drives the core with threads, a monotonic clock and real devices."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from queue import Empty, SimpleQueue

from engine.decisions import Decision, Reason
from engine.drivers.completion import Completion, Pending
from engine.drivers.lines import DeviceLines
from engine.drivers.refiner import Refiner
from engine.effects import (
    CallWorker,
    ConvertWeights,
    Effect,
    EvictWeights,
    LoadWeights,
    MoveWeights,
    PublishSnapshot,
    RejectRequests,
    ResolveRequests,
    RunBatch,
    WakeAt,
)
from engine.errors import Refused
from engine.events import (
    CancelRequested,
    DeviceAdded,
    Event,
    SnapshotDue,
    Submitted,
    TimePassed,
    TruthSampled,
)
from engine.ports import Clock, Device, Payload, Recorder
from engine.request import Request
from engine.scheduler.core import EngineCore
from engine.snapshot import Snapshot

RING = 8192
OUTBOX = 65_536


class LiveDriver:
    """Run the core in this process: whoever has news runs it, devices work in its order.

    The one lock covers reading the clock, `handle`, and queueing the effects;
    nothing else happens under it. So each device does its effects in exactly
    the order in which the core decided them, and nobody waits for a thread
    that merely schedules.
    """

    def __init__(
        self,
        core: EngineCore,
        *,
        clock: Clock,
        join: Callable[[Sequence[Payload]], Payload],
        recorder: Recorder | None = None,
    ) -> None:
        """Start the timer and completion threads; devices are added later.

        Args:
            join: Puts the outputs of a split request together, in order.
            recorder: Takes note of every input and decision, under the lock.
        """
        self.clock = clock
        self._core = core
        self._recorder = recorder
        self._lock = threading.Lock()
        self._ids = count(1)
        self._pending: dict[int, Pending] = {}
        self._lines: dict[str, DeviceLines] = {}
        self._ring: deque[Decision] = deque(maxlen=RING)
        self._outbox: deque[Decision] = deque(maxlen=OUTBOX)
        self._snapshot: Snapshot | None = None
        self._is_closing = False
        self._on_cancel = self.cancel
        self._idle = threading.Event()
        self._completion = Completion(join)
        self.refiner = Refiner(self.handle)
        self._resolved: list[list[Pending]] = []
        self._handed_out: list[Callable[[], None]] = []
        self._wakes: SimpleQueue[int | None] = SimpleQueue()
        self._timer = threading.Thread(target=self._keep_time, name="millpond-timer")
        self._timer.start()
        self._routes: dict[type, Callable[[Effect], None]] = self._make_routes()

    def handle(self, event: Event) -> list[Effect]:
        """Tell the core of an event and queue what it decides.

        Results are handed out after the lock is free: waking a caller takes long.

        Returns:
            The effects, already queued: for callers that look for an answer.
        """
        with self._lock:
            now_ns = self.clock.now_ns()
            if self._recorder is not None:
                self._recorder.event(event, now_ns)
            effects = self._core.handle(event, now_ns)
            if effects:
                routes = self._routes
                for effect in effects:
                    routes[type(effect)](effect)
                resolved, self._resolved = self._resolved, []
                handed_out, self._handed_out = self._handed_out, []
        if effects:
            for entries in resolved:
                busy = any(type(effect) is RunBatch for effect in effects)
                self._completion.resolve(entries, in_a_hurry=busy)
            for hand_out in handed_out:
                hand_out()
        return effects

    def add_device(self, device: Device) -> None:
        """Start a device's threads, then let the core use it."""
        name = device.spec.name
        measured = self.refiner.measured
        lines = DeviceLines(device, self.clock, tell=self.handle, measured=measured)
        self._lines[name] = lines
        self.handle(DeviceAdded(device.spec))

    def next_id(self) -> int:
        """Return a request id that nobody had."""
        return next(self._ids)

    def submit(self, request: Request, future: Pending) -> None:
        """Let a request in; its result comes by the future. Runs once per request.

        Args:
            future: Holds the payload.

        Raises:
            Refused: A limit bound; nothing of the request is kept.
        """
        if self._is_closing:
            raise _closing(request.lane.model)
        request_id = future.request_id = request.id
        future.on_cancel = self._on_cancel
        future.outputs = None
        self._pending[request_id] = future
        effects = self.handle(Submitted(request))
        if effects:
            _raise_if_refused(effects, request_id)

    def cancel(self, request_id: int) -> None:
        """Take a request out; without effect when it is through already."""
        self.handle(CancelRequested(request_id))

    def snapshot(self) -> Snapshot:
        """Return the engine as it is now."""
        effects = self.handle(SnapshotDue())
        return [e for e in effects if isinstance(e, PublishSnapshot)][-1].snapshot

    def sample_truth(self) -> None:
        """Ask every device what it holds itself, and tell the core."""
        for name, lines in self._lines.items():
            used = lines.device.truth_bytes()
            if used:
                self.handle(TruthSampled(name, used))

    def decisions(self, limit: int) -> tuple[Decision, ...]:
        """Return the latest decisions, newest last."""
        with self._lock:
            return tuple(self._ring)[-limit:]

    def drain_decisions(self) -> list[Decision]:
        """Return the decisions since the last call, oldest first, 65 536 at most."""
        with self._lock:
            found = [*self._outbox]
            self._outbox.clear()
        return found

    def close(self, grace_s: float = 5.0) -> None:
        """Refuse new work, let what is queued finish for a while, cancel the rest, stop.

        Args:
            grace_s: Longest wait for the queued work.
        """
        if self._is_closing:
            return
        with self._lock:
            self._is_closing = True
            if not self._pending:
                self._idle.set()
        if not self._idle.wait(grace_s):
            for request_id in list(self._pending):
                self.cancel(request_id)
        for lines in self._lines.values():
            lines.stop()
        self._wakes.put(None)
        self._timer.join()
        self._completion.close()
        for lines in self._lines.values():
            lines.device.close()

    def _make_routes(self) -> dict[type, Callable[[Effect], None]]:
        return {
            RunBatch: self._run_batch,
            CallWorker: self._to_worker,
            LoadWeights: self._to_loader,
            EvictWeights: self._to_loader,
            MoveWeights: self._to_worker,
            ConvertWeights: self._to_worker,
            ResolveRequests: self._resolve,
            RejectRequests: self._reject,
            WakeAt: self._wake_at,
            PublishSnapshot: self._publish,
            Decision: self._record,
        }

    def _run_batch(self, effect: Effect) -> None:
        assert isinstance(effect, RunBatch)
        pending = self._pending
        entries = [pending[request_id] for request_id, _, _ in effect.parts]
        self._lines[effect.device].work.put((effect, entries))

    def _to_worker(self, effect: Effect) -> None:
        assert isinstance(effect, CallWorker | MoveWeights | ConvertWeights)
        self._lines[effect.device].work.put((effect, []))

    def _to_loader(self, effect: Effect) -> None:
        assert isinstance(effect, LoadWeights | EvictWeights)
        self._lines[effect.device].loads.put(effect)

    def _resolve(self, effect: Effect) -> None:
        assert isinstance(effect, ResolveRequests)
        pop = self._pending.pop
        self._resolved.append([pop(request_id) for request_id in effect.request_ids])
        self._note_idle()

    def _reject(self, effect: Effect) -> None:
        assert isinstance(effect, RejectRequests)
        pop = self._pending.pop
        entries = [pop(request_id) for request_id in effect.request_ids]
        if effect.outcome != "refused":
            reject = self._completion.reject
            ended = {"outcome": effect.outcome, "message": effect.message}
            self._handed_out.append(partial(reject, entries, **ended))
        self._note_idle()

    def _note_idle(self) -> None:
        if self._is_closing and not self._pending:
            self._idle.set()

    def _wake_at(self, effect: Effect) -> None:
        assert isinstance(effect, WakeAt)
        self._wakes.put(effect.at_ns)

    def _publish(self, effect: Effect) -> None:
        assert isinstance(effect, PublishSnapshot)
        self._snapshot = effect.snapshot

    def _record(self, effect: Effect) -> None:
        assert isinstance(effect, Decision)
        self._ring.append(effect)
        self._outbox.append(effect)
        if self._recorder is not None:
            self._recorder.decision(effect)

    def _keep_time(self) -> None:
        at_ns: int | None = None
        while True:
            wait_s = None if at_ns is None else max(0.0, (at_ns - self.clock.now_ns()) / 1e9)
            try:
                at_ns = self._wakes.get(timeout=wait_s)
            except Empty:
                at_ns = None
                self.handle(TimePassed())
                continue
            if at_ns is None:
                return


def _raise_if_refused(effects: list[Effect], request_id: int) -> None:
    for effect in effects:
        if type(effect) is RejectRequests and request_id in effect.request_ids:
            raise Refused(
                effect.message,
                limit=effect.limit,
                wanted=effect.wanted,
                found=effect.found,
                retry_after_ms=effect.retry_after_ns / 1e6,
            )


def _closing(model: str) -> Refused:
    return Refused(
        f"{model}: the engine is closing; submit to another one",
        limit=Reason.CLOSING.value,
        wanted=1,
        found=0,
        retry_after_ms=0.0,
    )
