"""The yardstick: the least that an in-process batcher can be."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence

Run = Callable[[list[object]], Sequence[object]]


class _Call:
    """Hold one request: its input, its future, its output."""

    __slots__ = ("future", "loop", "output", "value")

    def __init__(
        self, value: object, future: asyncio.Future[object], *, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.value = value
        self.future = future
        self.loop = loop
        self.output: object = None


class BareLoop:
    """Keep one deque, one worker, one future per request, one wake-up per loop and batch."""

    def __init__(self, run: Run, *, high: int) -> None:
        """Start the worker; `run` maps a list of inputs to as many outputs."""
        self._run = run
        self._high = high
        self._queue: deque[_Call] = deque()
        self._news = threading.Condition(threading.Lock())
        self._is_idle = False
        self._is_open = True
        self.batches = 0
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def submit(self, value: object) -> asyncio.Future[object]:
        """Queue one input and return the future of its output."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[object] = loop.create_future()
        call = _Call(value, future, loop=loop)
        with self._news:
            self._queue.append(call)
            if self._is_idle:
                self._news.notify()
        return future

    def close(self) -> None:
        """End the worker."""
        with self._news:
            self._is_open = False
            self._news.notify()
        self._thread.join()

    def _work(self) -> None:
        queue, news = self._queue, self._news
        while True:
            with news:
                while self._is_open and not queue:
                    self._is_idle = True
                    news.wait()
                    self._is_idle = False
                if not self._is_open:
                    return
                batch = [queue.popleft() for _ in range(min(len(queue), self._high))]
            outputs = self._run([call.value for call in batch])
            self.batches += 1
            by_loop: dict[asyncio.AbstractEventLoop, list[_Call]] = {}
            for call, output in zip(batch, outputs, strict=True):
                call.output = output
                by_loop.setdefault(call.loop, []).append(call)
            for loop, calls in by_loop.items():
                loop.call_soon_threadsafe(_settle, calls)


def _settle(calls: list[_Call]) -> None:
    for call in calls:
        if not call.future.done():
            call.future.set_result(call.output)
