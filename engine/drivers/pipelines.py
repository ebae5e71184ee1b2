"""Pipelines on the live engine: host code on a small pool of threads, calls as requests."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from itertools import count
from typing import Protocol

from engine.errors import Cancelled, Failed, InputError, Refused
from engine.metrics import Counters, LatencyHistogram
from engine.pipeline import (
    CallEnded,
    CreditsChanged,
    HostFailed,
    JobCancelled,
    JobDone,
    JobSubmitted,
    PipelineEffect,
    PipelineEvent,
    PipelineMachine,
    RejectJob,
    ResolveJob,
    RunHost,
    StageReady,
    SubmitCalls,
)
from engine.ports import Clock
from engine.spec import PipelineSpec

CallTerms = tuple[int | None, int | None]
"""A job's class and deadline (an instant in ns); None: the policy's, and none."""


class Call(Protocol):
    """Submit a stage's call to the engine."""

    def __call__(self, model: str, x: object, *, terms: CallTerms) -> Future[object]:
        """Return the future of the model's output; never refused."""
        ...


class JobResult(Future[object]):
    """Be the future of a pipeline's caller; cancelling it cancels the calls under way."""

    on_cancel: Callable[[], object]

    def cancel(self) -> bool:
        """Cancel the wait and all that is done for it."""
        if not super().cancel():
            return False
        self.on_cancel()
        return True


class _Work:
    """Hold what only the driver knows of a job: its context, calls and outputs."""

    __slots__ = ("calls", "context", "future", "futures", "terms")

    def __init__(self, value: object, *, future: JobResult, terms: CallTerms) -> None:
        self.context = value
        self.future = future
        self.terms = terms
        self.calls: tuple[object, ...] = ()
        self.futures: list[Future[object]] = []


class Pipeline:
    """Run one pipeline: `pipeline(input)` blocks, `submit(input)` gives a future.

    The machine decides under a lock of its own; host code and calls happen
    outside of it, on the host pool and in the engine.
    """

    def __init__(
        self,
        spec: PipelineSpec,
        *,
        call: Call,
        pool: Executor,
        clock: Clock,
        credits: tuple[int, int],
    ) -> None:
        """Start without jobs.

        Args:
            call: Submits a stage's call to the engine.
            pool: Runs the host code.
            credits: Most jobs in flight, and most waiting beyond those.
        """
        self.spec = spec
        self._call = call
        self._pool = pool
        self._clock = clock
        self._lock = threading.Lock()
        self._machine = PipelineMachine(spec.name, len(spec.stages), *credits)
        self._ids = count(1)
        self._work: dict[int, _Work] = {}

    def __call__(
        self,
        value: object,
        *,
        priority_class: int | None = None,
        deadline_ms: float | None = None,
    ) -> object:
        """Run an input through all stages and return the result.

        Raises:
            Refused: Too many inputs wait already.
            Failed: A stage failed; says which and why.
        """
        return self.submit(
            value, priority_class=priority_class, deadline_ms=deadline_ms
        ).result()

    def submit(
        self,
        value: object,
        *,
        priority_class: int | None = None,
        deadline_ms: float | None = None,
    ) -> JobResult:
        """Start an input on its way; class and deadline hold for all stages.

        Raises:
            Refused: Too many inputs wait already.
        """
        if self.spec.missing:
            raise InputError(f"{self.spec.name}: {self.spec.missing}")
        job_id = next(self._ids)
        future = JobResult()
        future.on_cancel = partial(self._tell, JobCancelled(job_id))
        deadline_ns = None
        if deadline_ms is not None:
            deadline_ns = self._clock.now_ns() + int(deadline_ms * 1e6)
        terms = (priority_class, deadline_ns)
        self._work[job_id] = _Work(value, future=future, terms=terms)
        for effect in self._tell(JobSubmitted(job_id)):
            if isinstance(effect, RejectJob) and effect.job_id == job_id:
                raise Refused(
                    effect.message,
                    limit="admission.pages_waiting",
                    wanted=1,
                    found=0,
                    retry_after_ms=1000.0,
                )
        return future

    def set_credits(self, in_flight: int, waiting: int) -> None:
        """Follow a policy version."""
        self._tell(CreditsChanged(in_flight, waiting))

    def counters(self) -> tuple[Counters, LatencyHistogram, int, int]:
        """Return copies of counters and latency, and the numbers in flight and waiting."""
        with self._lock:
            machine = self._machine
            return (
                machine.counters.copy(),
                machine.latency.copy(),
                machine.running_jobs,
                machine.waiting_jobs,
            )

    def close(self) -> None:
        """Cancel what is under way."""
        for work in list(self._work.values()):
            work.future.cancel()

    def _tell(self, event: PipelineEvent) -> list[PipelineEffect]:
        with self._lock:
            effects = self._machine.handle(event, self._clock.now_ns())
        for effect in effects:
            self._do(effect)
        return effects

    def _do(self, effect: PipelineEffect) -> None:
        match effect:
            case RunHost(job_id, stage):
                try:
                    self._pool.submit(self._host, job_id, stage)
                except RuntimeError:
                    self._tell(HostFailed(job_id, "the engine is closing"))
            case SubmitCalls(job_id, stage):
                self._submit_calls(job_id, stage)
            case ResolveJob(job_id):
                work = self._work.pop(job_id)
                if not work.future.done():
                    work.future.set_result(work.context)
            case RejectJob(job_id, outcome, message):
                self._reject(job_id, outcome=outcome, message=message)

    def _reject(self, job_id: int, *, outcome: str, message: str) -> None:
        work = self._work.pop(job_id)
        for future in work.futures:
            future.cancel()
        if outcome == "refused" or work.future.done():
            return
        error = Cancelled(message) if outcome == "cancelled" else Failed(message)
        work.future.set_exception(error)

    def _host(self, job_id: int, stage: int) -> None:
        """Run the host code before `stage`: combine the one before, prepare this one."""
        work = self._work.get(job_id)
        if work is None:
            return
        stages = self.spec.stages
        name = stages[min(stage, len(stages) - 1)].name
        try:
            if stage == 0:
                work.context = self.spec.start(work.context)
            else:
                outputs = tuple(future.result() for future in work.futures)
                work.context = stages[stage - 1].combine(work.context, outputs)
                work.futures = []
            if stage == len(stages):
                work.context = self.spec.finish(work.context)
                self._tell(JobDone(job_id))
                return
            work.calls = stages[stage].prepare(work.context)
        except Exception as error:  # host code is the user's: its error fails this job alone
            text = f"{self.spec.name}: {name}: {type(error).__name__}: {error}"
            self._tell(HostFailed(job_id, text))
            return
        self._tell(StageReady(job_id, len(work.calls)))

    def _submit_calls(self, job_id: int, stage: int) -> None:
        work = self._work.get(job_id)
        if work is None:
            return
        model = self.spec.stages[stage].model
        try:
            futures = [self._call(model, call, terms=work.terms) for call in work.calls]
        except Exception as error:  # what a stage made does not fit its model, or closing
            self._tell(HostFailed(job_id, f"{self.spec.name}: {model}: {error}"))
            return
        work.calls = ()
        work.futures = futures
        for future in futures:
            future.add_done_callback(partial(self._call_ended, job_id, model=model))

    def _call_ended(self, job_id: int, future: Future[object], *, model: str) -> None:
        if future.cancelled():
            return
        error = future.exception()
        text = f"{self.spec.name}: {model}: {error}" if error else ""
        self._tell(CallEnded(job_id, text))
