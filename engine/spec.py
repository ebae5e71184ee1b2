"""What a user brings: the description of a model, of a pipeline of models, of a device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal, NamedTuple

from engine.reserve import ReservePart

ITEM_BYTES: Mapping[str, int] = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "uint8": 1,
    "bool": 1,
}

DeviceKind = Literal["cpu", "cuda", "simulated"]


class LaneKey(NamedTuple):
    """Name a lane: requests of one model, one item shape and one dtype may share a batch."""

    model: str
    shape: tuple[int, ...]
    dtype: str

    def __str__(self) -> str:
        """Write the lane as `model 3x48x320 float32`."""
        return f"{self.model} {'x'.join(map(str, self.shape)) or 'scalar'} {self.dtype}"


@dataclass(frozen=True, slots=True)
class Bucket:
    """Give the shape and dtype of one item that a model accepts.

    The leading axis of a payload counts items and is not part of the shape.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"

    @property
    def item_bytes(self) -> int:
        """Return the size of one item in bytes."""
        return prod(self.shape) * ITEM_BYTES[self.dtype]


@dataclass(frozen=True, slots=True)
class Sample:
    """Hold one real input and what a right answer would be.

    `payload` is an array `(items, *shape)` for a model, whatever the first
    stage takes for a pipeline; `truth` is passed to `score` untouched.
    """

    payload: object
    truth: object = None


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """Describe one model: how it is built, what it eats, how its answers are judged.

    `build` returns a `torch.nn.Module` in evaluation mode with its weights, on
    the CPU; the engine's devices pack those weights into their arenas. It is
    called on a loader thread, once per process and model. `forward` takes one
    tensor `(items, *shape)` and returns one tensor `(items, ...)`.

    Attributes:
        name: Unique; letters, digits, `_`, `-`, `.`.
        build: Makes the module. Never reads a pickle.
        buckets: Item shapes that it accepts; the first is the default one.
        inputs: Seed to a real input with its truth; for the load generator.
        score: `(output, truth)` to named figures, such as `{"accuracy": 1.0}`.
        missing: Why it cannot be built on this machine and what to run; "" if it can.
        source: Where weights and architecture come from, in one line.
    """

    name: str
    build: Callable[[], object]
    buckets: tuple[Bucket, ...]
    inputs: Callable[[int], Sample]
    score: Callable[[object, object], Mapping[str, float]] | None = None
    missing: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class StageSpec:
    """Describe one stage of a pipeline: host code around one model.

    `prepare` turns the context into calls of the model: each an array
    `(items, *shape)`, one per lane; it may return none. `combine` takes the
    context and the outputs in the order of the calls and returns the next
    context. Both are pure functions and run on the host pool's threads.
    """

    name: str
    model: str
    prepare: Callable[[object], tuple[object, ...]]
    combine: Callable[[object, tuple[object, ...]], object]


@dataclass(frozen=True, slots=True)
class PipelineSpec:
    """Describe a chain of stages: what it takes, its stages in order, what it returns.

    `start` makes the first context from the caller's input, `finish` the
    result from the last one.
    """

    name: str
    start: Callable[[object], object]
    stages: tuple[StageSpec, ...]
    finish: Callable[[object], object]
    inputs: Callable[[int], Sample]
    score: Callable[[object, object], Mapping[str, float]] | None = None
    missing: str = ""
    source: str = ""

    @property
    def models(self) -> tuple[str, ...]:
        """Return the names of the models that its stages call."""
        return tuple(stage.model for stage in self.stages)


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """Describe a device to the core: its memory and how its leases are held.

    `addressed` leases are blocks of the arena; budgeted ones are bytes of the
    same pool without an address. `workspace_bytes` is the part of the pool set
    aside for budgeted leases; None lets weights and leases share all of it.

    Attributes:
        capacity_bytes: The arena's size plus the reserve.
        reserve_bytes: Never lent: context, libraries, NCCL and the guard page.
        reserve_parts: What the reserve is kept for; (): not known.
        load_bytes_per_s: Expected speed of a load, host to device.
        move_bytes_per_s: Expected speed of a move inside the device.
    """

    name: str
    kind: DeviceKind
    capacity_bytes: int
    reserve_bytes: int
    addressed: bool
    load_bytes_per_s: float
    move_bytes_per_s: float
    workspace_bytes: int | None = None
    source: str = ""
    reserve_parts: tuple[ReservePart, ...] = ()

    @property
    def pool_bytes(self) -> int:
        """Return the bytes that residents and leases share at most."""
        return self.capacity_bytes - self.reserve_bytes
