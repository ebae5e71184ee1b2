"""Lines: a device's worker and loader threads, each doing its effects in order."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Protocol

from engine.drivers.completion import Pending
from engine.effects import (
    CallWorker,
    ConvertWeights,
    Effect,
    EvictWeights,
    LoadWeights,
    MoveWeights,
    RunBatch,
)
from engine.errors import DeviceError, OutOfMemoryError
from engine.events import (
    BatchFailed,
    BatchFinished,
    ConvertFailed,
    ConvertFinished,
    DeviceLost,
    Event,
    EvictFailed,
    EvictFinished,
    FailureKind,
    LoadFailed,
    LoadFinished,
    MoveFailed,
    MoveFinished,
    WorkerReady,
)
from engine.ports import Clock, Device, Payload

_LOG = logging.getLogger("millpond.device")


class Measured(Protocol):
    """Take note of the workspace that a batch needed."""

    def __call__(self, kind: str, batch: RunBatch, *, peak_bytes: int) -> None:
        """Note it for that kind of device."""
        ...


Work = tuple[RunBatch | CallWorker | MoveWeights | ConvertWeights, list[Pending]]


class DeviceLines:
    """Own a device's two threads and their queues.

    The worker runs batches, moves and conversions; the loader evicts and
    loads, so that copies overlap with compute. Neither ends by an error of a
    model or a device: it becomes an event, and the core answers it.
    """

    def __init__(
        self,
        device: Device,
        clock: Clock,
        *,
        tell: Callable[[Event], list[Effect]],
        measured: Measured,
    ) -> None:
        """Start both threads.

        Args:
            tell: Passes an event to the core.
            measured: Takes note of a batch's workspace, before the batch counts as finished.
        """
        self.device = device
        self.work: SimpleQueue[Work | None] = SimpleQueue()
        self.loads: SimpleQueue[LoadWeights | EvictWeights | None] = SimpleQueue()
        self._clock = clock
        self._tell = tell
        self._measured = measured
        name = device.spec.name
        self._threads = (
            threading.Thread(target=self._run_worker, name=f"millpond-worker-{name}"),
            threading.Thread(target=self._run_loader, name=f"millpond-loader-{name}"),
        )
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Finish what is queued and end both threads."""
        self.work.put(None)
        self.loads.put(None)
        for thread in self._threads:
            thread.join()

    def _run_worker(self) -> None:
        try:
            self.device.start_worker()
        except Exception as error:  # a device that cannot start is lost, its thread lives on
            self._tell(DeviceLost(self.device.spec.name, _describe(error)[1]))
        while (work := self.work.get()) is not None:
            effect, entries = work
            if isinstance(effect, RunBatch):
                self._tell(self._run_batch(effect, entries))
            elif isinstance(effect, CallWorker):
                self._tell(WorkerReady(effect.device))
            elif isinstance(effect, MoveWeights):
                self._tell(self._move(effect))
            else:
                self._tell(self._convert(effect))
            del work, effect, entries  # tensors must not outlive their batch here

    def _run_loader(self) -> None:
        while (effect := self.loads.get()) is not None:
            if isinstance(effect, LoadWeights):
                self._tell(self._load(effect))
            else:
                self._tell(self._evict(effect))

    def _run_batch(self, batch: RunBatch, entries: list[Pending]) -> Event:
        clock = self._clock
        started_ns = clock.now_ns()
        try:
            inputs = _inputs(batch, entries)
            outputs = self.device.run(batch, inputs)
            assert len(outputs) == len(entries), "a device returns one output per part"
        except Exception as error:  # any error of a model ends here: the worker must live
            failure, message = _describe(error)
            if failure is not FailureKind.ERROR:
                _LOG.warning("batch %d on %s: %s", batch.batch_id, batch.device, message)
            return BatchFailed(batch.batch_id, clock.now_ns() - started_ns, failure, message)
        _keep(batch, entries, outputs=outputs)
        took_ns, peak_bytes = clock.now_ns() - started_ns, self.device.peak_bytes()
        if peak_bytes:
            self._measured(self.device.spec.kind, batch, peak_bytes=peak_bytes)
        return BatchFinished(batch.batch_id, took_ns, peak_bytes)

    def _load(self, effect: LoadWeights) -> Event:
        started_ns = self._clock.now_ns()
        try:
            self.device.load(effect)
        except Exception as error:  # the loader must live, see above
            failure, message = _describe(error)
            _LOG.warning("load of %s onto %s: %s", effect.model, effect.device, message)
            return LoadFailed(effect.load_id, self._since(started_ns), failure, message)
        return LoadFinished(effect.load_id, self._since(started_ns), effect.size_bytes)

    def _evict(self, effect: EvictWeights) -> Event:
        started_ns = self._clock.now_ns()
        try:
            self.device.evict(effect)
        except Exception as error:  # the loader must live, see above
            _, message = _describe(error)
            _LOG.warning("eviction of %s from %s: %s", effect.model, effect.device, message)
            return EvictFailed(effect.eviction_id, self._since(started_ns), message)
        return EvictFinished(effect.eviction_id, self._since(started_ns), effect.size_bytes)

    def _move(self, effect: MoveWeights) -> Event:
        started_ns = self._clock.now_ns()
        try:
            self.device.move(effect)
        except Exception as error:  # the worker must live, see above
            failure, message = _describe(error)
            return MoveFailed(effect.move_id, self._since(started_ns), failure, message)
        return MoveFinished(effect.move_id, self._since(started_ns), effect.size_bytes)

    def _convert(self, effect: ConvertWeights) -> Event:
        started_ns = self._clock.now_ns()
        try:
            self.device.convert(effect)
        except Exception as error:  # the worker must live, see above
            failure, message = _describe(error)
            return ConvertFailed(effect.convert_id, self._since(started_ns), failure, message)
        return ConvertFinished(
            effect.convert_id, self._since(started_ns), effect.new_size_bytes
        )

    def _since(self, started_ns: int) -> int:
        return self._clock.now_ns() - started_ns


def _inputs(batch: RunBatch, entries: list[Pending]) -> list[Payload]:
    """Return one payload per part: whole for a whole request, a slice for a split one."""
    if batch.is_whole:
        return [entry.payload for entry in entries]
    inputs: list[Payload] = []
    for (_, first, items), entry in zip(batch.parts, entries, strict=True):
        payload = entry.payload
        if items != len(payload):
            payload = payload[first : first + items]
            if entry.outputs is None:
                entry.outputs = {}
        inputs.append(payload)
    return inputs


def _keep(batch: RunBatch, entries: list[Pending], *, outputs: Sequence[Payload]) -> None:
    if batch.is_whole:
        for entry, output in zip(entries, outputs, strict=True):
            entry.output = output
        return
    for (_, first, _), entry, output in zip(batch.parts, entries, outputs, strict=True):
        if entry.outputs is None:
            entry.output = output
        else:
            entry.outputs[first] = output


def _describe(error: Exception) -> tuple[FailureKind, str]:
    message = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, OutOfMemoryError):
        return FailureKind.OUT_OF_MEMORY, message
    if isinstance(error, DeviceError):
        return FailureKind.DEVICE_LOST, message
    return FailureKind.ERROR, message
