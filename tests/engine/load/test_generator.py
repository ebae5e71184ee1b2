"""Generator on real threads: against a target that answers when the test says so."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace

import numpy as np
import pytest

from engine.drivers.clock import MonotonicClock
from engine.errors import Expired, Failed, InputError, Refused
from engine.load.generator import Generator
from engine.load.plan import LoadPlan
from engine.spec import Sample

PATIENCE_S = 20.0


class Target:
    """Take requests; answer at once with `answer`, or keep them when it is None."""

    def __init__(self, answer: Callable[[Future[object], object], None] | None) -> None:
        self.answer = answer
        self.kept: list[Future[object]] = []
        self.payloads: list[object] = []
        self.terms: set[tuple[int | None, float | None]] = set()
        self.has_some = threading.Event()

    def submit(
        self, payload: object, priority_class: int | None, deadline_ms: float | None
    ) -> Future[object]:
        self.terms.add((priority_class, deadline_ms))
        self.payloads.append(payload)
        future: Future[object] = Future()
        if self.answer is not None:
            self.answer(future, payload)
        else:
            self.kept.append(future)
        self.has_some.set()
        return future


def refused() -> Refused:
    return Refused("full", limit="queue", wanted=1, found=0, retry_after_ms=1)


def echo(future: Future[object], payload: object) -> None:
    future.set_result(payload)


def start(target: Target, plan: LoadPlan, **scoring: object) -> Generator:
    score = scoring.get("score")
    generator = Generator(target.submit, one_row, score=score, clock=MonotonicClock())
    generator.start(plan)
    return generator


def one_row(seed: int) -> Sample:
    return Sample(np.full((1, 1), seed), seed)


def is_right(output: object, truth: object) -> dict[str, float]:
    return {"accuracy": float(np.asarray(output)[0, 0] == truth)}


def test_an_open_loop_sends_the_planned_number_and_counts_and_scores_every_result():
    target = Target(echo)
    plan = LoadPlan("m", rate_hz=200, seconds=0.2, priority_class=3, deadline_ms=50)
    generator = start(target, plan, score=is_right)
    assert generator.wait(PATIENCE_S)
    found = generator.figures()
    assert found.offered in {39, 40}  # the last one is due at the very end
    assert found.completed == found.sent == found.latency.count == len(target.payloads)
    assert (found.in_flight, found.scores, found.error) == (0, {"accuracy": 1.0}, "")
    assert target.terms == {(3, 50)}
    assert not generator.is_running


def test_a_closed_loop_never_has_more_requests_under_way_than_clients():
    target = Target(None)
    generator = start(target, LoadPlan("m", "closed", clients=2))
    for _ in range(5):
        assert target.has_some.wait(PATIENCE_S)
        target.has_some.clear()
        while target.kept:
            assert len(target.kept) <= 2
            target.kept.pop().set_result(None)
    found = generator.stop()
    assert found.completed >= 5 and found.in_flight == 0


def test_stopping_cancels_what_is_under_way_and_does_not_wait_for_it():
    target = Target(None)
    generator = start(target, LoadPlan("m", rate_hz=1000))
    assert target.has_some.wait(PATIENCE_S)
    found = generator.stop()
    assert found.cancelled == found.sent > 0
    assert (found.in_flight, generator.is_running) == (0, False)
    assert all(future.cancelled() for future in target.kept)


def test_a_load_that_waits_long_for_its_next_arrival_stops_at_once():
    generator = start(Target(echo), LoadPlan("m", rate_hz=0.001))
    found = generator.stop()
    assert (found.sent, generator.is_running) == (0, False)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(Failed("broken"), "failed"), (Expired("late"), "expired"), (refused(), "refused")],
)
def test_errors_of_results_are_counted_by_their_kind(error: Exception, outcome: str):
    target = Target(lambda future, _: future.set_exception(error))
    generator = start(target, LoadPlan("m", rate_hz=100, seconds=0.05))
    assert generator.wait(PATIENCE_S)
    found = generator.figures()
    assert getattr(found, outcome) == found.sent > 0
    assert found.error == str(error)


def test_a_refused_client_of_a_closed_loop_tries_again_later():
    def refuse(future: Future[object], payload: object) -> None:
        if len(target.payloads) == 1:
            raise refused()
        echo(future, payload)

    target = Target(refuse)
    generator = start(target, LoadPlan("m", "closed", clients=1))
    assert target.has_some.wait(PATIENCE_S)
    found = generator.stop(drain_s=PATIENCE_S)
    assert found.refused == 1 and found.completed >= 1


def test_an_edit_changes_the_load_without_a_new_start():
    target = Target(echo)
    plan = LoadPlan("m", rate_hz=0.001)
    generator = start(target, plan)
    generator.edit(replace(plan, rate_hz=500))
    assert target.has_some.wait(PATIENCE_S)
    assert generator.stop(drain_s=PATIENCE_S).completed > 0
    with pytest.raises(InputError, match="target: found other, wanted m"):
        generator.edit(replace(plan, target="other"))


def test_inputs_that_cannot_be_made_end_the_load_with_their_error():
    generator = Generator(
        Target(echo).submit, lambda _: 1 / 0, score=None, clock=MonotonicClock()
    )
    generator.start(LoadPlan("m"))
    assert generator.wait(PATIENCE_S)
    assert generator.figures().error == "ZeroDivisionError: division by zero"


def test_a_score_that_fails_is_reported_and_the_load_goes_on():
    plan = LoadPlan("m", rate_hz=100, seconds=0.05)
    generator = start(Target(echo), plan, score=lambda _, truth: {"share": 1 / (truth - truth)})
    assert generator.wait(PATIENCE_S)
    found = generator.figures()
    assert found.completed == found.sent > 0
    assert found.error == "score: ZeroDivisionError: division by zero"
