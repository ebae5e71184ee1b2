"""Run keeper: opens and finishes runs with all that says what they were made with."""

from __future__ import annotations

from engine.engine import Engine
from engine.units import NS_PER_MS
from storage import Store
from storage.samples import NewRun, RunKind, RunState


class RunKeeper:
    """Know what every run of a station has in common: engine, hardware, code."""

    def __init__(
        self, store: Store, engine: Engine, *, hardware: str, code_version: str
    ) -> None:
        """Take note of it."""
        self._store = store
        self._engine = engine
        self._hardware = hardware
        self._code_version = code_version

    def now_ms(self) -> int:
        """Return the wall time of the samples' time line, milliseconds since the epoch."""
        engine = self._engine
        return (engine.start_wall_ns + engine.clock.now_ns()) // NS_PER_MS

    def open_run(self, name: str, *, kind: RunKind, load: str, author: str) -> int:
        """Begin a run now, under the policy in force.

        Returns:
            Its id.

        Raises:
            StoreError: It cannot be stored.
        """
        return self._store.start_run(
            NewRun(
                name=name,
                kind=kind,
                started_ms=self.now_ms(),
                first_policy=self._engine.policy.version,
                author=author,
                load=load,
                hardware=self._hardware,
                code_version=self._code_version,
            )
        )

    def close_run(self, run_id: int, *, state: RunState, summary: dict[str, float]) -> None:
        """End a run now.

        Raises:
            StoreError: It cannot be stored.
        """
        self._store.finish_run(run_id, state=state, summary=summary, at_ms=self.now_ms())
