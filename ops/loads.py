"""Loads: at most one load at a time on a running engine, kept as a run in the store."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field, replace
from typing import Protocol

from engine.engine import Engine
from engine.errors import EngineError, InputError
from engine.load.generator import Generator
from engine.load.plan import LoadPlan
from engine.ports import Clock
from engine.spec import Sample
from ops.capacity import Capacity
from ops.load_status import LoadStatus, Session, load_status
from ops.targets import Target, Targets
from storage.samples import RunKind, RunState

DEFAULT_SHARE = 0.6
"""Part of the measured capacity that the default load asks for: busy, not overloaded."""
STOP_DRAIN_S = 2.0
CLOSE_DRAIN_S = 0.5
LAST_WAIT_S = 10.0
"""Longest wait for cancelled requests to come back and for the run to be stored."""
_LOG = logging.getLogger("millpond.loads")


class Keeper(Protocol):
    """Open and finish the runs that loads are kept as."""

    def open_run(self, name: str, *, kind: RunKind, load: str, author: str) -> int:
        """Begin a run and return its id."""
        ...

    def close_run(self, run_id: int, *, state: RunState, summary: dict[str, float]) -> None:
        """End a run with its figures."""
        ...


class _Watch:
    """Note when the inputs were ready: sending begins with the last of them."""

    def __init__(self, target: Target, clock: Clock) -> None:
        self._inputs = target.inputs
        self._clock = clock
        self.started_ns = 0

    def __call__(self, seed: int) -> Sample:
        sample = self._inputs(seed)
        self.started_ns = self._clock.now_ns()
        return sample


@dataclass(slots=True)
class _Load:
    session: Session
    generator: Generator
    watch: _Watch
    ended_ns: int = 0
    has_ended: threading.Event = field(default_factory=threading.Event)


class Loads:
    """Start, edit and stop the load of a station.

    One at a time, because a second generator would take the processor from
    the first and neither would mean what it says.
    """

    def __init__(
        self, engine: Engine, targets: Targets, *, keeper: Keeper, capacity: Capacity
    ) -> None:
        """Start nothing yet."""
        self._engine = engine
        self._targets = targets
        self._keeper = keeper
        self._capacity = capacity
        self._lock = threading.Lock()
        self._load: _Load | None = None
        self._probing = threading.Lock()

    def start(self, plan: LoadPlan, *, author: str, name: str = "") -> int:
        """Begin to send.

        Args:
            author: Who wants it; kept with the run.
            name: Of the run; "" names it after its target.

        Returns:
            Id of the run that it is kept as.

        Raises:
            InputError: A load is running already, or there is no such target.
            StoreError: The run cannot be stored; nothing is sent.
        """
        target = self._targets[plan.target]
        with self._lock:
            running = self._load
            if running is not None and not running.has_ended.is_set():
                raise InputError(
                    f"load: run {running.session.run_id} is still sending to "
                    f"{running.session.plan.target}; edit it, or stop it first"
                )
            run_id = self._keeper.open_run(
                name or f"load on {plan.target}",
                kind="load",
                load=plan.to_json(),
                author=author,
            )
            clock = self._engine.clock
            watch = _Watch(target, clock)
            started_ms = (self._engine.start_wall_ns + clock.now_ns()) // 1_000_000
            generator = Generator(target.submit, watch, score=target.score, clock=clock)
            load = _Load(Session(run_id, plan, started_ms), generator, watch)
            generator.start(plan)
            self._load = load
        threading.Thread(
            target=self._end, args=(load,), name="millpond-load-end", daemon=True
        ).start()
        return run_id

    def edit(self, plan: LoadPlan) -> None:
        """Follow another plan from now on; the run goes on.

        Raises:
            InputError: Nothing is running, or the plan has another target.
        """
        load = self._running()
        load.generator.edit(plan)
        load.session = replace(load.session, plan=plan)

    def stop(self, drain_s: float = STOP_DRAIN_S) -> LoadStatus | None:
        """Send nothing more, wait a little for what is under way, cancel the rest.

        Returns:
            The final status; None if no load was ever started.
        """
        load = self._load
        if load is None:
            return None
        load.generator.stop(drain_s)
        load.has_ended.wait(LAST_WAIT_S)
        return self.status()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the load has ended and its run is stored; return whether it has."""
        load = self._load
        return load is None or load.has_ended.wait(timeout_s)

    def status(self) -> LoadStatus | None:
        """Return how the load stands, or how the last one ended; None before the first."""
        load = self._load
        return None if load is None else self._status(load)

    def default_plan(self) -> LoadPlan:
        """Return the load of the default button: 60 % of what this machine was measured for.

        The first call measures for a second or more, unless that has happened.

        Raises:
            InputError: There is nothing to put load on.
        """
        target = self._targets[self._targets.default()]
        with self._probing:
            capacity_hz = self._capacity(target)
        rate_hz = max(0.01, float(f"{DEFAULT_SHARE * capacity_hz:.2g}"))
        return LoadPlan(target.name, kind="poisson", rate_hz=rate_hz)

    def close(self) -> None:
        """Stop a load that is running; its run ends with what was reached."""
        self.stop(CLOSE_DRAIN_S)

    def _running(self) -> _Load:
        load = self._load
        if load is None or load.has_ended.is_set():
            raise InputError("load: none is running; start one first")
        return load

    def _end(self, load: _Load) -> None:
        """Wait for the last result, then finish the run."""
        load.generator.wait()
        load.ended_ns = self._engine.clock.now_ns()
        status = self._status(load)
        if status.latency_ms["p50"] > 0:
            self._capacity.learn(load.session.plan.target, status.completed_hz)
        is_empty = not status.offered and bool(status.error)
        state: RunState = "failed" if is_empty else "finished"
        try:
            self._keeper.close_run(load.session.run_id, state=state, summary=status.summary())
        except EngineError as error:
            _LOG.warning("run %d could not be finished: %s", load.session.run_id, error)
        finally:
            load.has_ended.set()

    def _status(self, load: _Load) -> LoadStatus:
        started_ns = load.watch.started_ns
        until_ns = load.ended_ns or self._engine.clock.now_ns()
        return load_status(
            load.session,
            load.generator.figures(),
            is_running=load.generator.is_running,
            elapsed_ns=max(0, until_ns - started_ns) if started_ns else 0,
            slo_ms=self._engine.policy.model(load.session.plan.target).slo_ms,
        )
