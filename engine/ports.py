"""Ports: what a driver must be given - a clock, devices, models in host memory, a recorder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self, runtime_checkable

from engine.decisions import Decision
from engine.effects import ConvertWeights, EvictWeights, LoadWeights, MoveWeights, RunBatch
from engine.events import Event
from engine.profile import Profile
from engine.rules import Precision
from engine.spec import DeviceSpec, ModelSpec


@runtime_checkable
class Payload(Protocol):
    """Be an array or tensor `(items, ...)`: it has a length and can be sliced by items."""

    def __len__(self) -> int:
        """Return the number of items."""
        ...

    def __getitem__(self, items: slice, /) -> Self:
        """Return some of the items; may share memory."""
        ...


class Clock(Protocol):
    """Tell the time: monotonic nanoseconds from an arbitrary start."""

    def now_ns(self) -> int:
        """Return the present instant."""
        ...


class ModelImage(Protocol):
    """Hold one model in host memory, ready to be loaded onto any device.

    Attributes:
        size_bytes: Packed weights, as an arena will hold them (aligned).
        build_ns: Time that building and packing took.
        profiles: What is known of it: planned workspace, quickly probed latency.
    """

    @property
    def spec(self) -> ModelSpec:
        """Return the description that it was made from."""
        ...

    @property
    def size_bytes(self) -> int:
        """Return the size of the packed weights."""
        ...

    @property
    def build_ns(self) -> int:
        """Return how long building and packing took."""
        ...

    @property
    def profiles(self) -> Sequence[Profile]:
        """Return what is known of its sizes and latency."""
        ...


class LowerImage(Protocol):
    """Hold what is known of a model at a lower precision."""

    @property
    def profiles(self) -> Sequence[Profile]:
        """Return its sizes and latency, with the change of its output."""
        ...


class HostCopy(Protocol):
    """Say that a model's weights went from host memory to a file, or came back."""

    @property
    def model(self) -> str:
        """Return whose they are."""
        ...

    @property
    def size_bytes(self) -> int:
        """Return how many bytes they have."""
        ...

    @property
    def is_on_disk(self) -> bool:
        """Return whether they are a mapped file now."""
        ...

    @property
    def took_ns(self) -> int:
        """Return how long that took."""
        ...

    @property
    def trouble(self) -> str:
        """Return why they could not go; "" if they did."""
        ...


class ModelImages(Protocol):
    """Keep the images of all models of a process; devices load from here."""

    def add(self, spec: ModelSpec, kinds: Sequence[str]) -> ModelImage:
        """Build, pack and plan a model for these kinds of device.

        Raises:
            InputError: It cannot be built; says why and what to do.
        """
        ...

    def set_host_budget(self, budget_bytes: int | None) -> Sequence[HostCopy]:
        """Change how many bytes of weights stay in host memory; None: all. Blocks.

        Returns:
            What went to files or came back, since the last call.
        """
        ...

    def lower(self, model: str, precision: Precision) -> LowerImage:
        """Find out how a model that was added does at a lower precision.

        Raises:
            InputError: It cannot be run at it; says why.
        """
        ...

    def __getitem__(self, model: str) -> ModelImage:
        """Return the image of a model that was added."""
        ...


@dataclass(frozen=True, slots=True)
class Telemetry:
    """Show what the driver itself says of a card; None: it cannot say.

    Attributes:
        others_bytes: Memory of other processes on the same card.
        busy: Share of the last sample period in which a kernel ran, 0 to 1; not how
            full the card was.
        memory_busy: Share of it in which memory was read or written; not how full it was.
    """

    total_bytes: int
    used_bytes: int
    others_bytes: int | None = None
    busy: float | None = None
    memory_busy: float | None = None
    power_w: float | None = None
    temperature_c: int | None = None


class Device(Protocol):
    """Carry out what the core decided for one device.

    `load` and `evict` are called by the device's loader thread, `run`, `move`
    and `convert` by its worker thread, each in the core's order. All block
    until done and translate foreign errors: `Failed` for an error of the
    model, `OutOfMemoryError`, `DeviceError` when the device is lost.
    """

    @property
    def spec(self) -> DeviceSpec:
        """Return the description that the core knows."""
        ...

    def load(self, effect: LoadWeights) -> None:
        """Bring a model's weights to the effect's offset."""
        ...

    def evict(self, effect: EvictWeights) -> None:
        """Drop a model's weights."""
        ...

    def move(self, effect: MoveWeights) -> None:
        """Move a model's weights inside the arena."""
        ...

    def convert(self, effect: ConvertWeights) -> None:
        """Change the precision of a model's weights in place."""
        ...

    def run(self, batch: RunBatch, inputs: Sequence[Payload]) -> Sequence[Payload]:
        """Run one batch.

        Args:
            inputs: One array or tensor `(items, *shape)` per part, in order.

        Returns:
            One output `(items, ...)` per part, of the kind of its input, in
            host memory and not sharing memory with the device's workspace.
        """
        ...

    def peak_bytes(self) -> int:
        """Return the measured workspace of the batch that ran last; 0: not measured.

        Called by the worker, after `run`.
        """
        ...

    def truth_bytes(self) -> int:
        """Return what the device itself says is used; 0 when it cannot say."""
        ...

    def telemetry(self) -> Telemetry | None:
        """Return what the driver says of the card; None: there is no card, or no answer.

        May be called by any thread at any time.
        """
        ...

    def start_worker(self) -> None:
        """Prepare the calling thread: the device's worker, before its first batch."""
        ...

    def close(self) -> None:
        """Give all memory back; called once, when no thread uses the device any more."""
        ...


class Recorder(Protocol):
    """Keep inputs and decisions; called under the driver's lock, so it only appends."""

    def event(self, event: Event, now_ns: int) -> None:
        """Take note of one input of the core, before the core sees it."""
        ...

    def decision(self, decision: Decision) -> None:
        """Take note of one decision."""
        ...
