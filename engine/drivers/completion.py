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
    """Be the future of an asyncio caller; cancelling it cancels the request.

    It also holds what only the driver knows of the request, so that one
    object per request is enough: `payload`, and `output`, which the worker
    sets; `outputs` instead, by index of the first item, when it was split.
    """

    __slots__ = ("on_cancel", "output", "outputs", "payload", "request_id")

    request_id: int
    on_cancel: Callable[[int], None]
    payload: Payload
    output: Payload
    outputs: dict[int, Payload] | None

    def cancel(self, msg: object | None = None) -> bool:
        """Cancel the wait and the request behind it."""
        if not super().cancel(msg):
            return False
        self.on_cancel(self.request_id)
        return True


class ThreadResult(Future[object]):
    """Be the future of a caller with threads; see `AsyncResult`."""

    request_id: int
    on_cancel: Callable[[int], None]
    payload: Payload
    output: Payload
    outputs: dict[int, Payload] | None

    def cancel(self) -> bool:
        """Cancel the wait and the request behind it."""
        was_cancelled = self.cancelled()
        if not super().cancel():
            return False
        if not was_cancelled:
            self.on_cancel(self.request_id)
        return True


Pending = AsyncResult | ThreadResult
"""A request between submission and result."""

_Work = tuple[list[Pending], EngineError | None]


class Completion:
    """Resolve futures: one wake-up per event loop and batch, callbacks never on a worker.

    Whoever ran the core posts results to the event loops itself: a post runs
    nothing of the user's, and every thread in between costs a wake-up.
    Results for threads, whose callbacks run where the future is set, and
    those that have to be joined first, go through a thread of their own.
    """

    def __init__(self, join: Callable[[Sequence[Payload]], Payload]) -> None:
        """Start the thread.

        Args:
            join: Puts the outputs of a split request together again, in order.
        """
        self._join = join
        self._queue: SimpleQueue[_Work | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="millpond-completion")
        self._thread.start()

    def resolve(self, pending: list[Pending], *, in_a_hurry: bool = False) -> None:
        """Hand out results; called without the driver's lock.

        Args:
            in_a_hurry: A batch waits for the caller: the thread posts instead.
        """
        rest = pending if in_a_hurry else _post(pending)
        if rest:
            self._queue.put((rest, None))

    def reject(self, pending: list[Pending], *, outcome: str, message: str) -> None:
        """Hand out rejections; called without the driver's lock."""
        self._queue.put((pending, _OUTCOMES[outcome](message)))

    def close(self) -> None:
        """Hand out what is queued and end the thread."""
        self._queue.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        while (work := self._queue.get()) is not None:
            pending, error = work
            by_loop: dict[asyncio.AbstractEventLoop, list[AsyncResult]] = {}
            for one in pending:
                if one.outputs is not None and error is None:
                    one.output = self._join([one.outputs[i] for i in sorted(one.outputs)])
                if isinstance(one, AsyncResult):
                    by_loop.setdefault(one.get_loop(), []).append(one)
                else:
                    _settle([one], error)
            for loop, group in by_loop.items():
                _wake(loop, group, error=error)


def _post(pending: list[Pending]) -> list[Pending]:
    """Post whole results to their event loops; return those that need the thread."""
    rest: list[Pending] = []
    by_loop: dict[asyncio.AbstractEventLoop, list[AsyncResult]] = {}
    for one in pending:
        if type(one) is not AsyncResult or one.outputs is not None:
            rest.append(one)
            continue
        loop = one.get_loop()
        group = by_loop.get(loop)
        if group is None:
            group = by_loop[loop] = []
        group.append(one)
    for loop, group in by_loop.items():
        _wake(loop, group, error=None)
    return rest


def _wake(
    loop: asyncio.AbstractEventLoop, group: list[AsyncResult], *, error: EngineError | None
) -> None:
    try:
        loop.call_soon_threadsafe(_settle, group, error)
    except RuntimeError:
        _LOG.warning("%d results had no taker: their event loop is closed", len(group))


def _settle(group: Sequence[Pending], error: EngineError | None) -> None:
    for one in group:
        if one.done():
            continue
        if error is None:
            one.set_result(one.output)
        else:
            one.set_exception(error)
