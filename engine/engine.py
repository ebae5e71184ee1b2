"""Engine: the facade that users hold - infer, submit, apply, snapshot."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol, TypeVar, cast

import numpy as np

from engine.decisions import Decision
from engine.drivers.completion import AsyncResult, Pending, ThreadResult
from engine.drivers.live import LiveDriver
from engine.drivers.pipelines import Pipeline
from engine.errors import InputError, PolicyError
from engine.events import (
    Command,
    HostCopyFinished,
    OperatorCommand,
    PolicyChanged,
    ProfileUpdated,
)
from engine.policy import Policy
from engine.ports import Clock, Device, ModelImages, Payload, Recorder
from engine.request import Request
from engine.scheduler.core import EngineCore
from engine.snapshot import Snapshot
from engine.spec import Bucket, LaneKey, ModelSpec, PipelineSpec
from engine.units import MIB, ms_to_ns

HOST_THREADS = 2
F = TypeVar("F", AsyncResult, ThreadResult)


_LaneTerms = tuple[LaneKey, int, int, int | None]
"""A lane, the bytes of an item, and the policy's class and deadline (ns from submission)."""


class _Tensor(Payload, Protocol):
    """Be what a caller may pass: a numpy array or a torch tensor `(items, *shape)`."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> object: ...


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
        self.on_apply: Callable[[Policy, str, str], None] | None = None
        self._policy = policy
        self._apply_lock = threading.Lock()
        self._images = images
        self._specs: dict[str, ModelSpec] = {}
        self._pipelines: dict[str, Pipeline] = {}
        self._lanes: dict[tuple[str, tuple[int, ...], object], _LaneTerms] = {}
        self._pool = ThreadPoolExecutor(HOST_THREADS, thread_name_prefix="millpond-host")
        core = EngineCore(policy.compile())
        self._driver = LiveDriver(core, clock=clock, join=_join, recorder=recorder)
        self._kinds = sorted({device.spec.kind for device in devices})
        self._devices = tuple(device.spec for device in devices)
        for device in devices:
            self._driver.add_device(device)

    @property
    def policy(self) -> Policy:
        """Return the policy in force."""
        return self._policy

    @property
    def models(self) -> Mapping[str, ModelSpec]:
        """Return the models that can be asked, by name."""
        return self._specs

    @property
    def pipelines(self) -> Mapping[str, Pipeline]:
        """Return the pipelines that can be asked, by name."""
        return self._pipelines

    def add_model(self, spec: ModelSpec) -> None:
        """Build a model and let the core know its sizes and latency.

        Raises:
            InputError: The name is taken, or the model cannot be built.
        """
        if spec.name in self._specs:
            raise InputError(f"{spec.name}: a model of that name is there already; rename one")
        image = self._images.add(spec, self._kinds)
        self._driver.handle(HostCopyFinished(spec.name, image.build_ns, image.size_bytes))
        for profile in image.profiles:
            self._driver.handle(ProfileUpdated(profile))
        self._specs[spec.name] = spec

    def add_pipeline(self, spec: PipelineSpec) -> None:
        """Offer a pipeline whose models are there.

        Raises:
            InputError: One of its models is missing.
        """
        absent = [name for name in spec.models if name not in self._specs]
        if absent:
            raise InputError(f"{spec.name}: needs {', '.join(absent)}; add these models first")
        admission = self._policy.admission
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
        deadline_ns = None if deadline_ms is None else self._deadline(deadline_ms)
        future = ThreadResult()
        return self._queue(model, x, future, None, (priority_class, deadline_ns, False))

    def infer_async(
        self,
        model: str,
        x: object,
        *,
        priority_class: int | None = None,
        deadline_ms: float | None = None,
    ) -> AsyncResult:
        """Queue a batch of items from a coroutine and return what to await; see `infer`."""
        loop = asyncio.get_running_loop()
        deadline_ns = None if deadline_ms is None else self._deadline(deadline_ms)
        future = AsyncResult(loop=loop)
        return self._queue(model, x, future, loop, (priority_class, deadline_ns, False))

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
        with self._apply_lock:
            current = self._policy
            if expected_version != current.version:
                raise PolicyError(
                    f"policy: the edit is based on version {expected_version}, "
                    f"version {current.version} is in force; look at the difference and redo it"
                )
            self._check_devices(policy)
            new = policy.model_copy(update={"version": current.version + 1})
            if self.on_apply is not None:
                self.on_apply(new, author, reason)
            self._driver.handle(PolicyChanged(new.compile(), author, reason))
            self._policy = new
            self._lanes = {}  # classes and deadlines may have changed
            for pipeline in self._pipelines.values():
                admission = new.admission
                pipeline.set_credits(admission.pages_in_flight, admission.pages_waiting)
            return new.version

    def command(
        self, command: Command, *, author: str, model: str = "", device: str = ""
    ) -> None:
        """Do something by hand: load, evict, drain, pause and their opposites.

        Raises:
            InputError: Unknown model or device.
        """
        if model and model not in self._specs:
            raise InputError(self._unknown(model))
        names = [spec.name for spec in self._devices]
        if device and device not in names:
            raise InputError(f"{device}: no such device; there are {', '.join(names)}")
        if command is Command.LOAD and not model:
            raise InputError("load: say which model")
        self._driver.handle(OperatorCommand(command, author, model, device))

    def snapshot(self) -> Snapshot:
        """Return the whole engine at this instant, as a value."""
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

    def _call(
        self, model: str, x: object, priority_class: int | None, deadline_ns: int | None
    ) -> Future[object]:
        return self._queue(model, x, ThreadResult(), None, (priority_class, deadline_ns, True))

    def _queue(
        self,
        model: str,
        x: object,
        future: F,
        loop: asyncio.AbstractEventLoop | None,
        terms: tuple[int | None, int | None, bool],
    ) -> F:
        """Make the request and hand it to the driver; runs once per request."""
        try:
            shape = x.shape  # type: ignore[attr-defined]  # checked below: once per kind
            lane, item_bytes, default_class, default_ns = self._lanes[
                model, shape[1:], x.dtype  # type: ignore[attr-defined]  # as above
            ]
        except (KeyError, AttributeError, TypeError):
            lane, item_bytes, default_class, default_ns = self._find_lane(model, x)
            shape = cast(_Tensor, x).shape
        items = shape[0]
        if not items:
            raise InputError(f"{model}: the input has no items; its first axis is 0")
        driver = self._driver
        request_id = driver.next_id()
        priority_class, deadline_ns, internal = terms
        if priority_class is None:
            priority_class = default_class
        elif not 0 <= priority_class <= 9:
            raise InputError(f"priority_class: found {priority_class}, wanted 0 to 9")
        if deadline_ns is None and default_ns is not None:
            deadline_ns = self.clock.now_ns() + default_ns
        future.request_id = request_id
        future.on_cancel = driver.cancel
        request = Request(
            request_id,
            lane,
            items,
            items * item_bytes,
            priority_class,
            0,
            deadline_ns,
            internal,
        )
        driver.submit(request, Pending(cast(Payload, x), future, loop))
        return future

    def _deadline(self, deadline_ms: float) -> int:
        if not deadline_ms > 0:
            raise InputError(f"deadline_ms: found {deadline_ms}, wanted more than 0")
        return self.clock.now_ns() + ms_to_ns(deadline_ms)

    def _find_lane(self, model: str, x: object) -> _LaneTerms:
        """Check an input of a kind not seen before, and remember it."""
        spec = self._specs.get(model)
        if spec is None:
            raise InputError(self._unknown(model))
        if not (hasattr(x, "shape") and hasattr(x, "dtype")):
            raise InputError(f"{model}: wanted an array or tensor, found {type(x).__name__}")
        payload = cast(_Tensor, x)
        shape, dtype = tuple(payload.shape), str(payload.dtype).removeprefix("torch.")
        for bucket in spec.buckets:
            if shape[1:] == bucket.shape and len(shape) > 0 and dtype == bucket.dtype:
                part = self._policy.model(model)
                deadline_ms = part.deadline_ms
                found = (
                    LaneKey(model, bucket.shape, bucket.dtype),
                    bucket.item_bytes,
                    part.priority_class,
                    None if deadline_ms is None else ms_to_ns(deadline_ms),
                )
                self._lanes[model, shape[1:], payload.dtype] = found
                return found
        accepted = " or ".join(_describe(bucket) for bucket in spec.buckets)
        raise InputError(f"{model}: found {dtype} {shape}, wanted {accepted}")

    def _unknown(self, model: str) -> str:
        known = ", ".join(sorted(self._specs)) or "none yet"
        return f"{model}: no such model; there are {known}"

    def _check_devices(self, policy: Policy) -> None:
        sizes = {spec.name: spec.pool_bytes for spec in self._devices}
        for name, part in policy.devices.items():
            if name not in sizes:
                raise PolicyError(
                    f"devices.{name}: no such device; there are {', '.join(sizes)}"
                )
            if part.pool_mib is not None and part.pool_mib * MIB > sizes[name]:
                raise PolicyError(
                    f"devices.{name}.pool_mib: found {part.pool_mib:g}, the arena was made "
                    f"for {sizes[name] / MIB:g}; restart with a larger device to grow it"
                )


def _describe(bucket: Bucket) -> str:
    return f"{bucket.dtype} (items, {', '.join(map(str, bucket.shape))})"


def _join(outputs: Sequence[Payload]) -> Payload:
    """Put the outputs of a split request together, in order."""
    first = outputs[0]
    if isinstance(first, np.ndarray):
        return cast(Payload, np.concatenate(cast(Sequence[np.ndarray], outputs)))
    joiner = getattr(first, "new_empty", None)
    assert joiner is not None, "outputs are arrays or tensors"
    rows = sum(len(one) for one in outputs)
    joined = joiner((rows, *cast(_Tensor, first).shape[1:]))
    start = 0
    for one in outputs:
        joined[start : start + len(one)] = one
        start += len(one)
    return cast(Payload, joined)
