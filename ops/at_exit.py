"""At exit: closes what a script left open, so that its process ends and its data are kept."""

from __future__ import annotations

import threading
from typing import Protocol


class Closable(Protocol):
    """Be something that must be closed once."""

    def close(self) -> None:
        """Close it; idempotent."""
        ...


class Closer:
    """Close everything that is still open when the main thread ends.

    The threads of an engine keep a process alive, and functions registered
    with `atexit` run only after all threads have ended. So a thread of its own
    waits for the main one.
    """

    def __init__(self, main: threading.Thread) -> None:
        """Take note of the thread that matters; the first `add` starts the wait."""
        self._main = main
        self._lock = threading.Lock()
        self._open: list[Closable] = []
        self._thread: threading.Thread | None = None

    def add(self, thing: Closable) -> None:
        """Close this at the end, unless it is removed before."""
        with self._lock:
            self._open.append(thing)
            if self._thread is None:
                self._thread = threading.Thread(target=self._wait, name="millpond-closer")
                self._thread.start()

    def remove(self, thing: Closable) -> None:
        """Forget something that has been closed."""
        with self._lock:
            self._open = [one for one in self._open if one is not thing]

    def _wait(self) -> None:
        self._main.join()
        for thing in list(self._open):
            thing.close()


CLOSER = Closer(threading.main_thread())
