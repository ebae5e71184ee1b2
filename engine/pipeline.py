"""Pipelines: stages, fan-out and credits as a small machine of the same kind as the core."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from engine.metrics import Counters, LatencyHistogram


@dataclass(frozen=True, slots=True)
class JobSubmitted:
    """An input for the whole pipeline came in."""

    job_id: int


@dataclass(frozen=True, slots=True)
class StageReady:
    """The host part before a stage ended: so many calls of its model are prepared."""

    job_id: int
    calls: int


@dataclass(frozen=True, slots=True)
class JobDone:
    """The host part after the last stage ended: there is a result."""

    job_id: int


@dataclass(frozen=True, slots=True)
class CallEnded:
    """One call of a stage's model ended; `error` is empty when it has an output."""

    job_id: int
    error: str = ""


@dataclass(frozen=True, slots=True)
class HostFailed:
    """The host part of a stage raised an error."""

    job_id: int
    error: str


@dataclass(frozen=True, slots=True)
class JobCancelled:
    """The caller does not want the result any more."""

    job_id: int


@dataclass(frozen=True, slots=True)
class CreditsChanged:
    """The policy allows so many jobs in flight and so many waiting from now on."""

    in_flight: int
    waiting: int


PipelineEvent = (
    JobSubmitted | StageReady | JobDone | CallEnded | HostFailed | JobCancelled | CreditsChanged
)


@dataclass(frozen=True, slots=True)
class RunHost:
    """Run the host code between two stages: combine `stage - 1`, prepare `stage`.

    Stage 0 starts from the input; the stage after the last one makes the result.
    """

    job_id: int
    stage: int


@dataclass(frozen=True, slots=True)
class SubmitCalls:
    """Submit the prepared calls of a stage; they are never refused."""

    job_id: int
    stage: int


@dataclass(frozen=True, slots=True)
class ResolveJob:
    """Hand out the job's result."""

    job_id: int


@dataclass(frozen=True, slots=True)
class RejectJob:
    """End a job without a result: "refused", "failed" or "cancelled"; cancel its calls."""

    job_id: int
    outcome: str
    message: str


PipelineEffect = RunHost | SubmitCalls | ResolveJob | RejectJob


@dataclass(slots=True)
class _Job:
    started_ns: int
    stage: int = -1
    calls_left: int = 0


@dataclass(slots=True)
class PipelineMachine:
    """Decide what each job does next, and how many are worked on at once.

    Credits bound the jobs in flight, so that a burst of pages cannot fill the
    queues of later stages: those are never refused, or a page would be lost
    half-way. Beyond the credits jobs wait in line, beyond that they are
    refused at once.

    Attributes:
        stages: Number of stages.
        in_flight: Credits: most jobs being worked on.
        waiting: Most jobs waiting for a credit.
    """

    name: str
    stages: int
    in_flight: int
    waiting: int
    counters: Counters = field(default_factory=Counters)
    latency: LatencyHistogram = field(default_factory=LatencyHistogram)
    _jobs: dict[int, _Job] = field(default_factory=dict)
    _line: deque[int] = field(default_factory=deque)
    _running: int = 0

    def handle(self, event: PipelineEvent, now_ns: int) -> list[PipelineEffect]:
        """Apply one event and return what the driver must do next, in order."""
        match event:
            case JobSubmitted(job_id):
                return self._submitted(job_id, now_ns)
            case CreditsChanged(in_flight, waiting):
                self.in_flight, self.waiting = in_flight, waiting
                return self._use_credits()
            case _:
                job = self._jobs.get(event.job_id)
                return [] if job is None else self._advance(job, event, now_ns=now_ns)

    @property
    def running_jobs(self) -> int:
        """Return the number of jobs that hold a credit."""
        return self._running

    @property
    def waiting_jobs(self) -> int:
        """Return the number of jobs that wait for a credit."""
        return len(self._line)

    def _submitted(self, job_id: int, now_ns: int) -> list[PipelineEffect]:
        self.counters.submitted += 1
        if self._running >= self.in_flight and len(self._line) >= self.waiting:
            self.counters.refused += 1
            message = (
                f"{self.name}: {self._running} inputs in work and {len(self._line)} waiting, "
                f"admission allows {self.in_flight} and {self.waiting}; retry later"
            )
            return [RejectJob(job_id, "refused", message)]
        self._jobs[job_id] = _Job(now_ns)
        self._line.append(job_id)
        return self._use_credits()

    def _use_credits(self) -> list[PipelineEffect]:
        effects: list[PipelineEffect] = []
        while self._line and self._running < self.in_flight:
            job_id = self._line.popleft()
            self._running += 1
            self._jobs[job_id].stage = 0
            effects.append(RunHost(job_id, 0))
        return effects

    def _advance(self, job: _Job, event: PipelineEvent, *, now_ns: int) -> list[PipelineEffect]:
        match event:
            case StageReady(job_id, calls):
                job.calls_left = calls
                return [SubmitCalls(job_id, job.stage)] if calls else self._next(job_id, job)
            case CallEnded(job_id, ""):
                job.calls_left -= 1
                return [] if job.calls_left else self._next(job_id, job)
            case CallEnded(job_id, error) | HostFailed(job_id, error):
                self.counters.failed += 1
                return self._end(job_id, RejectJob(job_id, "failed", error))
            case JobDone(job_id):
                self.counters.completed += 1
                self.latency.record(now_ns - job.started_ns)
                return self._end(job_id, ResolveJob(job_id))
            case JobCancelled(job_id):
                self.counters.cancelled += 1
                message = f"{self.name}: cancelled by its caller"
                return self._end(job_id, RejectJob(job_id, "cancelled", message))
        raise AssertionError(f"{event!r} is not about a job")

    def _next(self, job_id: int, job: _Job) -> list[PipelineEffect]:
        job.stage += 1
        return [RunHost(job_id, job.stage)]

    def _end(self, job_id: int, effect: PipelineEffect) -> list[PipelineEffect]:
        job = self._jobs.pop(job_id)
        if job.stage < 0:
            self._line.remove(job_id)
        else:
            self._running -= 1
        return [effect, *self._use_credits()]
