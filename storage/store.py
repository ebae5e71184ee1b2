"""Store: everything that is kept, behind one object."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar, cast

from sqlalchemy import Connection, Engine, RowMapping, delete, insert, select, update
from sqlalchemy.pool import StaticPool

from engine.decisions import Kind
from engine.errors import StoreError
from engine.policy import Policy
from storage.database import check_schema, connect, migrate, store_path, translated
from storage.keyframes import Keyframes
from storage.lock import OwnerLock
from storage.prune import prune
from storage.queries import Query, decisions_query, interrupt_open_runs, window
from storage.rows import (
    decision_record,
    decision_row,
    device_row,
    device_sample,
    model_row,
    model_sample,
    policy_record,
    policy_row,
    run_record,
)
from storage.samples import (
    DecisionRecord,
    DeviceSample,
    ModelSample,
    NewRun,
    PolicyRecord,
    RunRecord,
    RunState,
)
from storage.schema import DECISIONS, DEVICE_SAMPLES, MODEL_SAMPLES, POLICIES, RUNS
from storage.series import thin_devices, thin_models
from storage.writer import Writer

V = TypeVar("V")


class Store:
    """Keep samples, decisions, policy versions and runs.

    One process owns a store and writes to it, through one thread; any number
    of others may read it at the same time.
    """

    def __init__(
        self, engine: Engine, name: str, *, lock: OwnerLock | None, writes: bool
    ) -> None:
        """Use `Store.open` instead."""
        self._engine = engine
        self._name = name
        self._lock = lock
        self._writer = Writer(engine, name=name) if writes else None
        self.keyframes = Keyframes(self._all, self._writing)
        self._is_closed = False

    @classmethod
    def open(cls, url: str = "sqlite:///millpond.db", *, read_only: bool = False) -> Self:
        """Open a store, make or migrate it, and own it.

        Runs that a crash left open are marked interrupted.

        Args:
            url: Such as `sqlite:///millpond.db`; `sqlite:///:memory:` keeps nothing.
            read_only: Read beside its owner.

        Raises:
            StoreError: Owned by another process, not readable, not writable, not ours.
        """
        path = store_path(url)
        name = str(path) if path else url
        if path is not None and path.is_dir():
            raise StoreError(f"{path}: a folder; name a file in it")
        if path is not None and not path.parent.is_dir():
            raise StoreError(
                f"{path.parent}: no such folder; make it or choose another --store"
            )
        if read_only:
            engine = connect(url, read_only=True)
            check_schema(engine, name)
            return cls(engine, name, lock=None, writes=False)
        lock = OwnerLock(Path(f"{path}.lock")) if path else None
        engine = connect(url, read_only=False)
        try:
            migrate(engine, name)
            interrupt_open_runs(engine, name)
        except StoreError:
            engine.dispose()
            if lock is not None:
                lock.release()
            raise
        return cls(engine, name, lock=lock, writes=True)

    def __enter__(self) -> Self:
        """Return the store; it is closed at the end."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Write what is queued and let others own it; idempotent."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._writer is not None:
            self._writer.close()
        self._engine.dispose()
        if self._lock is not None:
            self._lock.release()

    def append(
        self,
        devices: Sequence[DeviceSample],
        models: Sequence[ModelSample],
        *,
        decisions: Sequence[DecisionRecord],
    ) -> None:
        """Queue a second's samples and decisions; returns at once."""
        writer = self._writing()
        writer.append(DEVICE_SAMPLES, [device_row(sample) for sample in devices])
        writer.append(MODEL_SAMPLES, [model_row(sample) for sample in models])
        writer.append(DECISIONS, [decision_row(record) for record in decisions])

    def flush(self) -> None:
        """Wait until everything before it is committed.

        Raises:
            StoreError: It cannot be written now; it is kept and tried again.
        """
        self._writing().do(lambda _: None)
        health = self._writing().health()
        if health.waiting_rows:
            raise StoreError(
                f"{self._name}: {health.waiting_rows} rows wait to be written: "
                f"{health.last_error}; make room or repair the store"
            )

    def health(self) -> tuple[bool, str, int]:
        """Return (writes work, last error, rows that wait or were dropped)."""
        if self._writer is None:
            return True, "", 0
        health = self._writer.health()
        return health.is_ok, health.last_error, health.waiting_rows + health.dropped_rows

    def save_policy(self, policy: Policy, *, author: str, reason: str, at_ms: int) -> None:
        """Keep a policy version; returns when it is committed.

        Raises:
            StoreError: It could not be kept.
        """
        row = policy_row(policy, self.last_policy(), author=author, reason=reason, at_ms=at_ms)
        self._writing().do(lambda connection: connection.execute(insert(POLICIES), row))

    def policies(self, limit: int = 100) -> tuple[PolicyRecord, ...]:
        """Return the latest policy versions, newest first."""
        query = select(POLICIES).order_by(POLICIES.c.version.desc()).limit(limit)
        return self._all(query, policy_record)

    def policy(self, version: int) -> Policy:
        """Return a policy version.

        Raises:
            StoreError: There is none of that number.
        """
        query = select(POLICIES).where(POLICIES.c.version == version)
        for record in self._all(query, policy_record):
            return Policy.parse(json.loads(record.document))
        raise StoreError(
            f"{self._name}: no policy version {version}; see `millpond policy list`"
        )

    def last_policy(self) -> Policy | None:
        """Return the latest policy version; None in a new store."""
        latest = self.policies(limit=1)
        return Policy.parse(json.loads(latest[0].document)) if latest else None

    def start_run(self, run: NewRun) -> int:
        """Open a run and return its id; its series begin at its start."""
        row = {**asdict(run), "ended_ms": None, "state": "open", "summary": "{}"}

        def start(connection: Connection) -> int:
            key = connection.execute(insert(RUNS), row).inserted_primary_key
            assert key is not None, "an inserted row has a key"
            return int(key[0])

        return cast(int, self._writing().do(start))

    def finish_run(
        self, run_id: int, *, state: RunState, summary: Mapping[str, float], at_ms: int
    ) -> None:
        """Close a run with its figures."""
        values = {"state": state, "summary": json.dumps(dict(summary)), "ended_ms": at_ms}
        self.run(run_id)
        change = update(RUNS).where(RUNS.c.id == run_id).values(values)
        self._writing().do(lambda connection: connection.execute(change))

    def runs(self, limit: int = 100) -> tuple[RunRecord, ...]:
        """Return the latest runs, newest first."""
        return self._all(select(RUNS).order_by(RUNS.c.id.desc()).limit(limit), run_record)

    def run(self, run_id: int) -> RunRecord:
        """Return a run.

        Raises:
            StoreError: There is none of that number.
        """
        for record in self._all(select(RUNS).where(RUNS.c.id == run_id), run_record):
            return record
        raise StoreError(f"{self._name}: no run {run_id}; see `millpond runs list`")

    def delete_run(self, run_id: int) -> None:
        """Forget a run; the store's series stay.

        Raises:
            StoreError: There is none of that number.
        """
        self.run(run_id)
        change = delete(RUNS).where(RUNS.c.id == run_id)
        self._writing().do(lambda connection: connection.execute(change))

    def device_series(
        self, start_ms: int, end_ms: int, *, points: int | None = 600
    ) -> tuple[DeviceSample, ...]:
        """Return the devices' samples from `start_ms` up to `end_ms`, thinned; None: all."""
        query = window(DEVICE_SAMPLES, start_ms, end_ms=end_ms)
        samples = self._all(query.order_by(DEVICE_SAMPLES.c.at_ms), device_sample)
        return thin_devices(samples, start_ms=start_ms, end_ms=end_ms, points=points)

    def model_series(
        self, start_ms: int, end_ms: int, *, points: int | None = 600
    ) -> tuple[ModelSample, ...]:
        """Return the models' samples from `start_ms` up to `end_ms`, merged; None: all."""
        query = window(MODEL_SAMPLES, start_ms, end_ms=end_ms)
        samples = self._all(query.order_by(MODEL_SAMPLES.c.at_ms), model_sample)
        return thin_models(samples, start_ms=start_ms, end_ms=end_ms, points=points)

    def decisions(
        self,
        start_ms: int,
        end_ms: int,
        *,
        limit: int = 500,
        kinds: Iterable[Kind] | None = None,
        text: str = "",
    ) -> tuple[DecisionRecord, ...]:
        """Return the latest stored decisions of a window, newest first.

        Args:
            kinds: Only these; None: all.
            text: Only those whose model, device, reason or numbers contain it.
        """
        query = decisions_query(start_ms, end_ms, kinds=kinds, text=text)
        return self._all(query.limit(limit), decision_record)

    def prune(self, now_ms: int, *, keep_s: int = 48 * 3600) -> int:
        """Delete samples and decisions older than `keep_s`, a chunk at a time.

        Returns:
            Rows deleted.
        """
        return prune(self._writing(), before_ms=now_ms - keep_s * 1000)

    def _writing(self) -> Writer:
        if self._writer is None:
            raise StoreError(f"{self._name}: opened read-only; only its owner can write")
        return self._writer

    def _all(self, query: Query, read: Callable[[RowMapping], V]) -> tuple[V, ...]:
        def rows(connection: Connection) -> tuple[V, ...]:
            return tuple(read(row) for row in connection.execute(query).mappings())

        # In memory there is one connection: reads take their turn among the writes.
        if self._writer is not None and isinstance(self._engine.pool, StaticPool):
            return cast(tuple[V, ...], self._writer.do(rows))
        with translated(self._name), self._engine.connect() as connection:
            return rows(connection)
