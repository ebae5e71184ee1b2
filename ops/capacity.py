"""Capacity: how many requests per second a target can take on this machine, measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass

from engine.errors import EngineError, InputError
from engine.ports import Clock
from engine.profile import Profile
from engine.units import NS_PER_S
from ops.targets import Target

PROBE_CLASS = 9
"""Probes are the least urgent work there is."""
PROBE_SECONDS = 1.0
PROBE_REQUESTS = 4
"""At least so many, for targets that need longer than the probe's time for a few."""
PATIENCE_S = 30.0
INPUTS = 4


@dataclass(frozen=True, slots=True)
class Probe:
    """Say how hard to try.

    Attributes:
        clients: Requests under way at once.
        seconds: Shortest measurement.
        patience_s: Longest wait for one result.
    """

    clients: int
    seconds: float = PROBE_SECONDS
    patience_s: float = PATIENCE_S


def measure_hz(target: Target, clock: Clock, *, probe: Probe) -> float:
    """Return requests per second with as many clients as can keep the devices busy.

    The first request is not counted: it brings the weights. Real requests
    through the whole path are measured because profiles know neither how many
    calls a page makes nor what threads cost each other.

    Raises:
        InputError: No result came in time, so that nothing is known.
        EngineError: What a request failed with.
    """
    payloads = [target.inputs(seed).payload for seed in range(INPUTS)]
    _await(_send(target, payloads[0]), probe.patience_s)
    start_ns = clock.now_ns()
    end_ns = start_ns + int(probe.seconds * NS_PER_S)
    under_way: set[Future[object]] = set()
    sent = done = 0
    try:
        while clock.now_ns() < end_ns or done < PROBE_REQUESTS:
            while len(under_way) < probe.clients:
                under_way.add(_send(target, payloads[sent % INPUTS]))
                sent += 1
            ended, under_way = wait(under_way, probe.patience_s, FIRST_COMPLETED)
            if not ended:
                raise _no_answer(target.name, probe.patience_s)
            for future in ended:
                future.result()
            done += len(ended)
        took_ns = clock.now_ns() - start_ns
    finally:
        for future in under_way:
            future.cancel()
    return done * NS_PER_S / took_ns


def _send(target: Target, payload: object) -> Future[object]:
    return target.submit(payload, PROBE_CLASS, None)


def _await(future: Future[object], patience_s: float) -> None:
    try:
        future.result(patience_s)
    except TimeoutError as error:
        future.cancel()
        raise _no_answer("probe", patience_s) from error


def _no_answer(name: str, patience_s: float) -> InputError:
    return InputError(f"{name}: no result within {patience_s:g} s; is the engine paused?")


def expected_hz(profiles: Mapping[str, Profile], *, high: int, devices: int) -> float:
    """Return what profiles let hope for: one item of every model, in full batches.

    Args:
        profiles: By model; those that a target calls.
        high: Largest batch.

    Returns:
        Requests per second if nothing but the devices took time; 0 without a profile.
    """
    busy_ns = sum(profile.latency.at(high) / high for profile in profiles.values())
    return devices * NS_PER_S / busy_ns if busy_ns else 0.0


class Capacity:
    """Remember what was measured; the first one who asks for a target pays for it."""

    def __init__(
        self, clock: Clock, *, clients: int, expected: Callable[[Target], float]
    ) -> None:
        """Know nothing yet.

        Args:
            clients: Requests under way at once while measuring.
            expected: What to believe where nothing can be measured, in requests
                per second.
        """
        self._clock = clock
        self._probe = Probe(clients)
        self._expected = expected
        self._known: dict[str, float] = {}

    def __call__(self, target: Target) -> float:
        """Return requests per second that the target can take; measures if need be."""
        known = self._known.get(target.name)
        if known is not None:
            return known
        try:
            measured = measure_hz(target, self._clock, probe=self._probe)
        except EngineError:
            return self._expected(target)
        self._known[target.name] = measured
        return measured

    def learn(self, name: str, completed_hz: float) -> None:
        """Take note of real traffic that got more through than was thought possible."""
        known = self._known.get(name)
        if known is not None and completed_hz > known:
            self._known[name] = completed_hz
