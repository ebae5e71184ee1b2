"""Engine: the facade that users hold - infer, submit, apply, snapshot."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar, cast

from engine.decisions import Decision
from engine.drivers.completion import AsyncResult, ThreadResult
from engine.drivers.inputs import Inputs, join
from engine.drivers.live import LiveDriver
from engine.drivers.operator import Operator
from engine.drivers.pipelines import CallTerms, Pipeline
from engine.drivers.policy_desk import Applied, PolicyDesk
from engine.drivers.stock import Stock
from engine.errors import InputError
from engine.events import (
    Command,
    PolicyChanged,
)
from engine.policy import Policy
from engine.ports import Clock, Device, ModelImages, Payload, Recorder
from engine.profile import Profile
from engine.request import Request
from engine.scheduler.core import EngineCore
from engine.snapshot import Snapshot
from engine.spec import ModelSpec, PipelineSpec
from engine.units import ms_to_ns

HOST_THREADS = 2
MAX_DEADLINE_MS = 1e9
F = TypeVar("F", AsyncResult, ThreadResult)


class Engine:
    """Serve many models on a few devices out of one memory pool per device.

        engine.infer("digit_reader", x)          # blocks
        future = engine.submit("digit_reader", x)
        y = await engine.infer_async("digit_reader", x)

    All methods may be called from any thread.
    """

    def __init__(
        self,
        devices: Sequence[Device],
        images: ModelImages,
        *,
        policy: Policy,
        clock: Clock,
        recorder: Recorder | None = None,
    ) -> None:
        """Start the threads of the driver and of every device."""
        self.clock = clock
        self.start_wall_ns = time.time_ns() - clock.now_ns()
        self._inputs = Inputs(policy)
        self._pipelines: dict[str, Pipeline] = {}
        self._pool = ThreadPoolExecutor(HOST_THREADS, thread_name_prefix="millpond-host")
        core = EngineCore(policy.compile())
        self._driver = LiveDriver(core, clock=clock, join=join, recorder=recorder)
        kinds = sorted({device.spec.kind for device in devices})
        self._stock = Stock(images, self._inputs, driver=self._driver, kinds=kinds)
        self._devices = tuple(device.spec for device in devices)
        self.operator = Operator(self._driver.handle, self._inputs, devices=self._devices)
        self._desk = PolicyDesk(policy, self._devices, swap=self._swap, ready=self._stock.learn)
        for device in devices:
            self._driver.add_device(device)

    @property
    def policy(self) -> Policy:
        """Return the policy in force."""
        return self._desk.policy

    def store_versions_with(self, store: Applied) -> None:
        """Keep every policy version before it takes effect; `store` may refuse it."""
        self._desk.store = store

    @property
    def models(self) -> Mapping[str, ModelSpec]:
        """Return the models that can be asked, by name."""
        return self._inputs.specs

    @property
    def pipelines(self) -> Mapping[str, Pipeline]:
        """Return the pipelines that can be asked, by name."""
        return self._pipelines

    def add_model(self, spec: ModelSpec) -> None:
        """Build a model and let the core know its sizes and latency.

        Raises:
            InputError: The name is taken, or the model cannot be built.
        """
        self._stock.add(spec, self.policy)

    def lower_profiles(self) -> tuple[Profile, ...]:
        """Return what is known of models at lower precisions."""
        return self._stock.lower()

    def add_pipeline(self, spec: PipelineSpec) -> None:
        """Offer a pipeline whose models are there.

        Raises:
            InputError: One of its models is missing.
        """
        absent = [name for name in spec.models if name not in self._inputs.specs]
        if absent:
            raise InputError(f"{spec.name}: needs {', '.join(absent)}; add these models first")
        admission = self.policy.admission
        self._pipelines[spec.name] = Pipeline(
            spec,
            call=self._call,
            pool=self._pool,
            clock=self.clock,
            credits=(admission.pages_in_flight, admission.pages_waiting),
        )

    def infer(
        self,
        model: str,
        x: object,
        *,
        priority_class: int | None = None,
        deadline_ms: float | None = None,
    ) -> object:
        """Return the model's output for a batch of items; blocks until it is there.

        Args:
            x: Array or tensor `(items, *shape)`, of a shape and dtype that the model accepts.
            priority_class: 0 (most urgent) to 9; None: the policy's for the model.
            deadline_ms: From now; None: the policy's default for the model.

        Returns:
            Output `(items, ...)`, of the kind of `x`.

        Raises:
            InputError: Unknown model, or an input that it does not accept.
            Refused, Expired, Failed: See their texts.
        """
        return self.submit(
            model, x, priority_class=priority_class, deadline_ms=deadline_ms
        ).result()

    def submit(
        self,
        model: str,
        x: object,
        *,
        priority_class: int | None = None,
        deadline_ms: float | None = None,
    ) -> Future[object]:
        """Queue a batch of items and return the future of its output; see `infer`."""
        future = ThreadResult()
        return self._queue(
            model, x, future=future, priority_class=priority_class, deadline_ms=deadline_ms
        )

    def infer_async(
        self,
        model: str,
        x: object,
        *,
        priority_class: int | None = None,
        deadline_ms: float | None = None,
    ) -> AsyncResult:
        """Queue a batch of items from a coroutine and return what to await; see `infer`."""
        future = AsyncResult(loop=asyncio.get_running_loop())
        return self._queue(
            model, x, future=future, priority_class=priority_class, deadline_ms=deadline_ms
        )

    def apply(self, policy: Policy, *, author: str, reason: str, expected_version: int) -> int:
        """Put a policy in force between two steps of the core; nothing is restarted or dropped.

        Args:
            expected_version: Version that the edit started from.

        Returns:
            The new version.

        Raises:
            PolicyError: Somebody else applied a version meanwhile, or a device's part is wrong.
            StoreError: The version could not be stored; nothing has changed.
        """
        return self._desk.apply(
            policy, author=author, reason=reason, expected_version=expected_version
        )

    def command(
        self, command: Command, *, author: str, model: str = "", device: str = ""
    ) -> None:
        """Do something by hand: load, evict, drain, pause and their opposites; see `operator`.

        Raises:
            InputError: Unknown model or device.
        """
        self.operator.command(command, author=author, model=model, device=device)

    def snapshot(self) -> Snapshot:
        """Return the whole engine at this instant."""
        return self._driver.snapshot()

    def sample_truth(self) -> None:
        """Ask the devices what they hold themselves, so that snapshots can show it."""
        self._driver.sample_truth()

    def decisions(self, limit: int = 200) -> tuple[Decision, ...]:
        """Return the latest decisions, newest last."""
        return self._driver.decisions(limit)

    def drain_decisions(self) -> list[Decision]:
        """Return the decisions since the last call, oldest first."""
        return self._driver.drain_decisions()

    def close(self, grace_s: float = 5.0) -> None:
        """Refuse new work, finish or cancel what waits, stop all threads; idempotent."""
        for pipeline in self._pipelines.values():
            pipeline.close()
        self._driver.close(grace_s)
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _call(self, model: str, x: object, *, terms: CallTerms) -> Future[object]:
        """Submit a call of a pipeline's stage; it is never refused."""
        lane = self._inputs.terms(model, x)
        priority_class, deadline_ns = terms
        if priority_class is None:
            priority_class = lane.priority_class
        driver = self._driver
        future = ThreadResult()
        future.payload = payload = cast(Payload, x)
        size_bytes = len(payload) * lane.item_bytes
        request = Request(
            driver.next_id(),
            lane.lane,
            len(payload),
            size_bytes,
            priority_class,
            0,
            deadline_ns,
        )
        request.internal = True
        driver.submit(request, future)
        return future

    def _queue(
        self,
        model: str,
        x: object,
        *,
        future: F,
        priority_class: int | None,
        deadline_ms: float | None,
    ) -> F:
        """Check what a caller wants of a request and send it; runs once per request."""
        lane = self._inputs.terms(model, x)
        if priority_class is None:
            priority_class = lane.priority_class
        elif not 0 <= priority_class <= 9:
            raise InputError(f"priority_class: found {priority_class}, wanted 0 to 9")
        deadline_ns = lane.deadline_ns
        if deadline_ms is not None:
            if not 0 < deadline_ms < MAX_DEADLINE_MS:
                raise InputError(f"deadline_ms: found {deadline_ms}, wanted more than 0")
            deadline_ns = ms_to_ns(deadline_ms)
        if deadline_ns is not None:
            deadline_ns += self.clock.now_ns()
        driver = self._driver
        payload = cast(Payload, x)
        items = len(payload)
        future.payload = payload
        request = Request(
            driver.next_id(),
            lane.lane,
            items,
            items * lane.item_bytes,
            priority_class,
            0,
            deadline_ns,
        )
        driver.submit(request, future)
        return future

    def _swap(self, policy: Policy, *, author: str, reason: str) -> None:
        """Put a policy in force everywhere."""
        self._driver.handle(PolicyChanged(policy.compile(), author, reason))
        self._inputs.follow(policy)
        self._stock.follow(policy)
        admission = policy.admission
        for pipeline in self._pipelines.values():
            pipeline.set_credits(admission.pages_in_flight, admission.pages_waiting)
