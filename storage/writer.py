"""Writer: one thread writes everything, in batches; callers never wait for samples."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from queue import SimpleQueue

from sqlalchemy import Connection, Engine, Table, insert
from sqlalchemy.exc import IntegrityError

from engine.errors import StoreError
from storage.database import translated

Row = Mapping[str, object]
MAX_WAITING_ROWS = 200_000
_LOG = logging.getLogger("millpond.store")


@dataclass(frozen=True, slots=True)
class _Rows:
    table: Table
    rows: Sequence[Row]


@dataclass(slots=True)
class _Task:
    """Hold a change that its caller waits for, and what became of it."""

    change: Callable[[Connection], object]
    done: threading.Event
    result: object = None
    error: StoreError | None = None


@dataclass(frozen=True, slots=True)
class Health:
    """Show how the writer is doing.

    Attributes:
        last_error: Of the last failed write, "" since it works again.
        waiting_rows: Rows that are not committed yet.
        dropped_rows: Rows given up because too many waited.
    """

    is_ok: bool
    last_error: str
    waiting_rows: int
    dropped_rows: int


class Writer:
    """Own the only thread that writes.

    Rows that cannot be written stay and are tried again with the next ones;
    beyond 200 000 of them the oldest are dropped and counted: a full disk
    must not fill the memory too.
    """

    def __init__(self, engine: Engine, *, name: str) -> None:
        """Start the thread.

        Args:
            name: Of the store, for messages.
        """
        self._engine = engine
        self._name = name
        self._queue: SimpleQueue[_Rows | _Task | None] = SimpleQueue()
        self._waiting: list[_Rows] = []
        self._last_error = ""
        self._dropped = 0
        self._is_closed = False
        self._gate = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="millpond-writer")
        self._thread.start()

    def append(self, table: Table, rows: Sequence[Row]) -> None:
        """Queue rows and return at once."""
        with self._gate:
            if rows and not self._is_closed:
                self._queue.put(_Rows(table, rows))

    def do(self, change: Callable[[Connection], object]) -> object:
        """Make a change in the writer's thread, in order, and return its result.

        Raises:
            StoreError: It failed; nothing of it was kept.
        """
        task = _Task(change, threading.Event())
        with self._gate:
            if self._is_closed:
                raise StoreError(f"{self._name}: the store is closed; open it again")
            self._queue.put(task)
        task.done.wait()
        if task.error is not None:
            raise task.error
        return task.result

    def health(self) -> Health:
        """Return how it is doing."""
        waiting = sum(len(batch.rows) for batch in self._waiting)
        return Health(not self._last_error, self._last_error, waiting, self._dropped)

    def close(self) -> None:
        """Write what is queued and end the thread; idempotent."""
        with self._gate:
            if not self._is_closed:
                self._is_closed = True
                self._queue.put(None)
        self._thread.join()
        lost = sum(len(batch.rows) for batch in self._waiting)
        if lost:
            _LOG.error("%s: %d rows were not written: %s", self._name, lost, self._last_error)

    def _run(self) -> None:
        while (work := self._queue.get()) is not None:
            batch = [work]
            while not self._queue.empty():
                more = self._queue.get()
                if more is None:
                    self._write(batch)
                    return
                batch.append(more)
            self._write(batch)

    def _write(self, batch: list[_Rows | _Task]) -> None:
        """Write rows together, tasks each in a transaction of its own, all in order."""
        for work in batch:
            if isinstance(work, _Rows):
                self._waiting.append(work)
                continue
            self._write_rows()
            self._write_task(work)
        self._write_rows()

    def _write_rows(self) -> None:
        if not self._waiting:
            return
        try:
            with self._engine.begin() as connection:
                for table, rows in _by_table(self._waiting).items():
                    connection.execute(insert(table), rows)
        except IntegrityError:
            self._write_one_by_one()
        except Exception as error:  # noqa: BLE001  the only writer must live
            self._last_error = _line(error)
            while sum(len(one.rows) for one in self._waiting) > MAX_WAITING_ROWS:
                self._dropped += len(self._waiting.pop(0).rows)
            return
        self._last_error = ""
        self._waiting.clear()

    def _write_one_by_one(self) -> None:
        """Drop the rows that are there already (a clock set back), keep the others."""
        by_table = _by_table(self._waiting)
        singles = [(table, row) for table, rows in by_table.items() for row in rows]
        for table, row in singles:
            try:
                with self._engine.begin() as connection:
                    connection.execute(insert(table), row)
            except Exception as error:  # noqa: BLE001  this row cannot be written, others can
                self._last_error = _line(error)
                self._dropped += 1
        self._waiting.clear()

    def _write_task(self, task: _Task) -> None:
        try:
            with translated(self._name), self._engine.begin() as connection:
                task.result = task.change(connection)
        except StoreError as error:
            task.error = error
        except Exception as error:  # noqa: BLE001  its caller waits for an answer
            task.error = StoreError(f"{self._name}: {_line(error)}")
        finally:
            task.done.set()


def _line(error: Exception) -> str:
    """Return an error's own words, on one line."""
    cause = getattr(error, "orig", None) or error
    return (str(cause).splitlines() or [type(cause).__name__])[0]


def _by_table(waiting: Sequence[_Rows]) -> dict[Table, list[Row]]:
    found: dict[Table, list[Row]] = {}
    for batch in waiting:
        found.setdefault(batch.table, []).extend(batch.rows)
    return found
