"""Completion: results reach their callers on a thread of their own."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import SimpleQueue

from engine.errors import Cancelled, EngineError, Expired, Failed
from engine.ports import Payload

_LOG = logging.getLogger("millpond.completion")
_OUTCOMES: dict[str, Callable[[str], EngineError]] = {
    "expired": Expired,
    "cancelled": Cancelled,
    "failed": Failed,
}


class AsyncResult(asyncio.Future[object]):
    """Be the future of an asyncio caller; cancelling it cancels the request."""

    __slots__ = ("on_cancel", "request_id")

    request_id: int
    on_cancel: Callable[[int], None]

    def cancel(self, msg: object | None = None) -> bool:
        """Cancel the wait and the request behind it."""
        if not super().cancel(msg):
            return False
        self.on_cancel(self.request_id)
        return True


class ThreadResult(Future[object]):
    """Be the future of a caller with threads; cancelling it cancels the request."""

    request_id: int
    on_cancel: Callable[[int], None]

    def cancel(self) -> bool:
        """Cancel the wait and the request behind it."""
        was_cancelled = self.cancelled()
        if not super().cancel():
            return False
        if not was_cancelled:
            self.on_cancel(self.request_id)
        return True


class Pending:
    """Hold what only the driver knows of a request: its payload, its caller, its outputs.

    `output` is set by the worker; `outputs` instead when the request was split,
    by index of the first item.
    """

    __slots__ = ("future", "loop", "output", "outputs", "payload")

    def __init__(
        self,
        payload: Payload,
        future: AsyncResult | ThreadResult,
        loop: asyncio.AbstractEventLoop | None,
    ) -> None:
        """Keep a request's payload until it is resolved or rejected."""
        self.payload = payload
        self.future = future
        self.loop = loop
        self.output: Payload | None = None
        self.outputs: dict[int, Payload] | None = None


class Completion:
    """Resolve futures: one wake-up per event loop and batch, callbacks never on a worker."""

    def __init__(self, join: Callable[[Sequence[Payload]], Payload]) -> None:
        """Start the thread.

        Args:
            join: Puts the outputs of a split request together again, in order.
        """
        self._join = join
        self._queue: SimpleQueue[tuple[list[Pending], EngineError | None] | None] = (
            SimpleQueue()
        )
        self._thread = threading.Thread(target=self._run, name="millpond-completion")
        self._thread.start()

    def resolve(self, pending: list[Pending]) -> None:
        """Queue results; called under the driver's lock."""
        self._queue.put((pending, None))

    def reject(self, pending: list[Pending], outcome: str, message: str) -> None:
        """Queue rejections; called under the driver's lock."""
        self._queue.put((pending, _OUTCOMES[outcome](message)))

    def close(self) -> None:
        """Hand out what is queued and end the thread."""
        self._queue.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        while (work := self._queue.get()) is not None:
            pending, error = work
            by_loop: dict[asyncio.AbstractEventLoop, list[Pending]] = {}
            for one in pending:
                if one.outputs is not None and error is None:
                    one.output = self._join([one.outputs[i] for i in sorted(one.outputs)])
                if one.loop is None:
                    _settle_thread(one, error)
                else:
                    by_loop.setdefault(one.loop, []).append(one)
            for loop, group in by_loop.items():
                _wake(loop, group, error)


def _wake(
    loop: asyncio.AbstractEventLoop, group: list[Pending], error: EngineError | None
) -> None:
    try:
        loop.call_soon_threadsafe(_settle_loop, group, error)
    except RuntimeError:
        _LOG.warning("%d results had no taker: their event loop is closed", len(group))


def _settle_loop(group: list[Pending], error: EngineError | None) -> None:
    for one in group:
        future = one.future
        if future.done():
            continue
        if error is None:
            future.set_result(one.output)
        else:
            future.set_exception(error)


def _settle_thread(one: Pending, error: EngineError | None) -> None:
    future = one.future
    if future.done():
        return
    if error is None:
        future.set_result(one.output)
    else:
        future.set_exception(error)
