"""Runbooks: run notebooks in child processes, show their progress, keep their reports."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from engine.errors import EngineError, InputError
from ops.loads import Keeper
from ops.notebook_files import Runbook, checked, find_runbooks
from ops.runbook_process import LIMIT_S, Child
from storage.samples import RunState

MOST_RUNNING = 2
KEPT_JOBS = 100
State = Literal["running", "finished", "failed", "cancelled"]
_RUN_STATES: dict[str, RunState] = {
    "finished": "finished",
    "failed": "failed",
    "cancelled": "interrupted",
}


@dataclass(frozen=True, slots=True)
class RunbookJob:
    """Show one execution of a notebook.

    Attributes:
        run_id: The run that it is kept as.
        cells_done: Of the `cells_total` code cells; 0 of 0 until it has begun.
        seconds: So far, or in all.
        error: What its cell raised, or why it ended; "" if all is well.
        report: The HTML report, once there is one.
    """

    id: int
    name: str
    state: State
    cells_done: int
    cells_total: int
    started_ms: int
    seconds: float
    error: str
    report: Path | None
    run_id: int


@dataclass(slots=True)
class _Job:
    id: int
    name: str
    run_id: int
    started_ms: int
    child: Child
    thread: threading.Thread | None = None


class Runbooks:
    """Start notebooks, at most two at a time, each in a process of its own.

    Attributes:
        folder: Where executed notebooks and reports go.
    """

    def __init__(
        self,
        notebooks: Path,
        folder: Path,
        *,
        keeper: Keeper,
        now_ms: Callable[[], int],
        limit_s: float = LIMIT_S,
    ) -> None:
        """Start nothing yet.

        Args:
            notebooks: Folder of the runbooks.
            now_ms: Wall time, milliseconds since the epoch.
            limit_s: Longest time for one notebook.
        """
        self.folder = folder
        self._notebooks = notebooks
        self._keeper = keeper
        self._now_ms = now_ms
        self._limit_s = limit_s
        self._lock = threading.Lock()
        self._jobs: dict[int, _Job] = {}
        self._next_id = 1

    def list(self) -> tuple[Runbook, ...]:
        """Return the notebooks that can be run, by name."""
        return find_runbooks(self._notebooks)

    def start(
        self, name: str, *, parameters: Mapping[str, object] | None = None, author: str
    ) -> int:
        """Begin to execute a notebook.

        Args:
            parameters: In place of the notebook's own values.
            author: Who wants it; kept with the run.

        Returns:
            The job's id.

        Raises:
            InputError: No such notebook or parameter, or too many are running.
            StoreError: The run cannot be stored; nothing is started.
        """
        runbook = self._find(name)
        chosen = checked(runbook, parameters or {})
        with self._lock:
            running = [job for job in self._jobs.values() if job.child.is_running]
            if len(running) >= MOST_RUNNING:
                raise InputError(
                    f"{name}: {len(running)} notebooks are running; wait or cancel one"
                )
            run_id = self._keeper.open_run(
                name, kind="notebook", load=json.dumps(chosen), author=author
            )
            started_ms = self._now_ms()
            stem = self.folder / f"{name}-{started_ms}-{self._next_id}"
            child = Child(runbook.path, stem, parameters=chosen, limit_s=self._limit_s)
            job = _Job(self._next_id, name, run_id, started_ms, child)
            self._next_id += 1
            self._jobs[job.id] = job
            self._forget_oldest()
        job.thread = threading.Thread(target=self._follow, args=(job,), daemon=True)
        job.thread.start()
        return job.id

    def jobs(self) -> tuple[RunbookJob, ...]:
        """Return all jobs of this process, newest first."""
        with self._lock:
            jobs = list(self._jobs.values())
        return tuple(_shown(job) for job in reversed(jobs))

    def cancel(self, job_id: int) -> None:
        """End a job and all processes it started; without effect when it is through.

        Raises:
            InputError: There is no such job.
        """
        self._job(job_id).child.cancel()

    def wait(self, job_id: int, timeout_s: float | None = None) -> RunbookJob:
        """Wait until a job is through and its run is stored; return how it stands then.

        Raises:
            InputError: There is no such job.
        """
        job = self._job(job_id)
        if job.thread is not None:
            job.thread.join(timeout_s)
        return _shown(job)

    def close(self) -> None:
        """Cancel what is running and wait for its end."""
        for job in list(self._jobs.values()):
            job.child.cancel()
            if job.thread is not None:
                job.thread.join()

    def _find(self, name: str) -> Runbook:
        runbooks = {runbook.name: runbook for runbook in self.list()}
        if name not in runbooks:
            known = ", ".join(runbooks) or "none"
            raise InputError(f"{name}: no such notebook; there are {known}")
        return runbooks[name]

    def _job(self, job_id: int) -> _Job:
        job = self._jobs.get(job_id)
        if job is None:
            raise InputError(f"job {job_id}: there is none of that number")
        return job

    def _forget_oldest(self) -> None:
        ended = [job.id for job in self._jobs.values() if not job.child.is_running]
        for job_id in ended[: max(0, len(self._jobs) - KEPT_JOBS)]:
            del self._jobs[job_id]

    def _follow(self, job: _Job) -> None:
        """Read the child's progress to its end, then finish the run."""
        job.child.follow()
        shown = _shown(job)
        summary = {
            "cells_done": float(shown.cells_done),
            "cells_total": float(shown.cells_total),
            "seconds": shown.seconds,
        }
        try:
            self._keeper.close_run(job.run_id, state=_RUN_STATES[shown.state], summary=summary)
        except EngineError as error:
            job.child.error = job.child.error or str(error)


def _shown(job: _Job) -> RunbookJob:
    child = job.child
    return RunbookJob(
        id=job.id,
        name=job.name,
        state=child.state,
        cells_done=child.cells_done,
        cells_total=child.cells_total,
        started_ms=job.started_ms,
        seconds=child.seconds,
        error=child.error,
        report=child.report if child.report.is_file() else None,
        run_id=job.run_id,
    )
