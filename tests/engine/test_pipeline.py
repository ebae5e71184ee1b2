"""Tests of the pipeline machine: stages, fan-out, credits."""

from __future__ import annotations

from engine.pipeline import (
    CallEnded,
    CreditsChanged,
    HostFailed,
    JobCancelled,
    JobDone,
    JobSubmitted,
    PipelineMachine,
    RejectJob,
    ResolveJob,
    RunHost,
    StageReady,
    SubmitCalls,
)


def machine(*, in_flight: int = 2, waiting: int = 1) -> PipelineMachine:
    return PipelineMachine("ocr", 2, in_flight, waiting)


def test_a_job_goes_through_all_stages():
    pages = machine()
    assert pages.handle(JobSubmitted(1), 0) == [RunHost(1, 0)]
    assert pages.handle(StageReady(1, 2), 1) == [SubmitCalls(1, 0)]
    assert pages.handle(CallEnded(1), 2) == []
    assert pages.handle(CallEnded(1), 3) == [RunHost(1, 1)]
    assert pages.handle(StageReady(1, 1), 4) == [SubmitCalls(1, 1)]
    assert pages.handle(CallEnded(1), 5) == [RunHost(1, 2)]
    assert pages.handle(JobDone(1), 6) == [ResolveJob(1)]
    assert pages.counters.completed == 1
    assert pages.latency.max_ns == 6


def test_a_stage_without_calls_is_passed_over():
    pages = machine()
    pages.handle(JobSubmitted(1), 0)
    assert pages.handle(StageReady(1, 0), 1) == [RunHost(1, 1)]
    assert pages.handle(StageReady(1, 0), 2) == [RunHost(1, 2)]


def test_jobs_beyond_the_credits_wait_and_beyond_that_are_refused():
    pages = machine(in_flight=1, waiting=1)
    assert pages.handle(JobSubmitted(1), 0) == [RunHost(1, 0)]
    assert pages.handle(JobSubmitted(2), 0) == []
    (refused,) = pages.handle(JobSubmitted(3), 0)
    assert isinstance(refused, RejectJob)
    assert refused.outcome == "refused"
    pages.handle(StageReady(1, 0), 1)
    pages.handle(StageReady(1, 0), 1)
    assert pages.handle(JobDone(1), 2) == [ResolveJob(1), RunHost(2, 0)]


def test_a_failed_call_fails_its_job_once_and_frees_its_credit():
    pages = machine(in_flight=1)
    pages.handle(JobSubmitted(1), 0)
    pages.handle(JobSubmitted(2), 0)
    pages.handle(StageReady(1, 3), 1)
    assert pages.handle(CallEnded(1, "bad crop"), 2) == [
        RejectJob(1, "failed", "bad crop"),
        RunHost(2, 0),
    ]
    assert pages.handle(CallEnded(1), 3) == []


def test_an_error_of_host_code_fails_its_job_alone():
    pages = machine()
    pages.handle(JobSubmitted(1), 0)
    pages.handle(JobSubmitted(2), 0)
    assert pages.handle(HostFailed(1, "not an image"), 1) == [
        RejectJob(1, "failed", "not an image")
    ]
    assert pages.handle(StageReady(2, 1), 2) == [SubmitCalls(2, 0)]


def test_a_waiting_job_can_be_cancelled():
    pages = machine(in_flight=1)
    pages.handle(JobSubmitted(1), 0)
    pages.handle(JobSubmitted(2), 0)
    (cancelled,) = pages.handle(JobCancelled(2), 1)
    assert isinstance(cancelled, RejectJob)
    assert (pages.running_jobs, pages.waiting_jobs) == (1, 0)


def test_more_credits_let_waiting_jobs_start():
    pages = machine(in_flight=1)
    pages.handle(JobSubmitted(1), 0)
    pages.handle(JobSubmitted(2), 0)
    assert pages.handle(CreditsChanged(2, 1), 1) == [RunHost(2, 0)]
