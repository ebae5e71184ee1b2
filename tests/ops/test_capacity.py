"""Capacity: measured through the real path, remembered, and hoped for where nothing comes."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from engine.drivers.clock import VirtualClock
from engine.errors import InputError
from engine.profile import Latency, Profile, ProfileKey
from engine.spec import Sample
from engine.units import NS_PER_MS
from ops.capacity import Capacity, Probe, expected_hz, measure_hz
from ops.targets import Target


def served(clock: VirtualClock, took_ns: int, log: list[object]) -> Target:
    """Return a target that answers at once, after so much of the clock's time."""

    def submit(payload: object, *terms: object) -> Future[object]:
        clock.move_to(clock.now_ns() + took_ns)
        log.append((payload, *terms))
        future: Future[object] = Future()
        future.set_result(payload)
        return future

    return Target("served", submit, Sample, None, ("served",))


def silent() -> Target:
    return Target("silent", lambda *_: Future(), Sample, None, ("silent",))


def test_the_rate_is_that_of_the_answers_and_the_first_request_does_not_count() -> None:
    clock, log = VirtualClock(), list[object]()
    rate_hz = measure_hz(served(clock, 10 * NS_PER_MS, log), clock, probe=Probe(clients=2))
    assert rate_hz == pytest.approx(100, rel=0.03)
    assert log[0] == (0, 9, None)


def test_a_slow_target_is_measured_over_a_few_requests_all_the_same() -> None:
    clock = VirtualClock()
    rate_hz = measure_hz(served(clock, 2000 * NS_PER_MS, []), clock, probe=Probe(clients=1))
    assert rate_hz == pytest.approx(0.5)


def test_a_target_that_does_not_answer_is_told_apart_from_a_slow_one() -> None:
    with pytest.raises(InputError, match="no result within"):
        measure_hz(silent(), VirtualClock(), probe=Probe(1, patience_s=0.01))


def test_what_was_measured_is_remembered_and_raised_by_better_traffic() -> None:
    clock, log = VirtualClock(), list[object]()
    capacity = Capacity(clock, clients=1, expected=lambda _: 0.0)
    target = served(clock, 100 * NS_PER_MS, log)
    first = capacity(target)
    sent = len(log)
    assert capacity(target) == first
    assert len(log) == sent
    capacity.learn("served", 2 * first)
    assert capacity(target) == 2 * first
    capacity.learn("served", 1.0)
    assert capacity(target) == 2 * first


def test_profiles_say_what_to_hope_for() -> None:
    profile = Profile(ProfileKey("a", "cpu"), 1, 0, 1, Latency(0, 4_000_000, 1_000_000))
    assert expected_hz({"a": profile}, high=4, devices=2) == pytest.approx(1000)
    assert expected_hz({}, high=4, devices=2) == 0.0
