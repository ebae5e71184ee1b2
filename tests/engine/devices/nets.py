"""Networks that are small enough for a test, each with its description, and effects on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from engine.effects import EvictWeights, LoadWeights, MoveWeights, RunBatch
from engine.spec import Bucket, DeviceSpec, LaneKey, ModelSpec, Sample
from engine.units import MIB

GUARD = 2 * MIB
ROW = Bucket((8,))


class Tied(nn.Module):
    """Share one weight between two layers, and keep a buffer and a transposed view."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.second = nn.Linear(8, 8)
        self.second.weight = self.first.weight
        self.register_buffer("scale", torch.arange(8, dtype=torch.float64))
        self.register_buffer("turned", self.first.weight.detach().t())

    def forward(self, x: Tensor) -> Tensor:
        x = self.second(self.first(x).relu()) @ self.turned
        return (x.double() * self.scale).float()


class Conv(nn.Module):
    """Have a channels-last convolution, a norm with buffers and a flat output."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.to(memory_format=torch.channels_last)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.conv(x)).relu().flatten(1)


class Recurrent(nn.Module):
    """Keep further lists of its weights, as torch's recurrent layers do."""

    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.LSTM(4, 6, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        out, _ = self.cells(x)
        return out


class Same(nn.Module):
    """Return the input itself."""

    def forward(self, x: Tensor) -> Tensor:
        return x


class Weighty(nn.Module):
    """Hold a weight of many pages; return a view of it for every item."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(rows, 1024))

    def forward(self, x: Tensor) -> Tensor:
        return self.table[:1].expand(len(x), -1)


class InPlace(nn.Module):
    """Write to the input."""

    def forward(self, x: Tensor) -> Tensor:
        return x.add_(1)


class Fragile(nn.Module):
    """Fail on a negative number, or for want of memory on a very large one."""

    def forward(self, x: Tensor) -> Tensor:
        if x.device.type != "meta" and bool((x < 0).any()):
            raise ValueError("a negative number")
        if x.device.type != "meta" and bool((x > 1e6).any()):
            raise MemoryError
        return x * 2


class Wordy(nn.Module):
    """Keep only what is not zero: how much that is, no dry run can know."""

    def forward(self, x: Tensor) -> Tensor:
        rows = torch.nonzero(x.abs().sum(1) + 1)
        return x[rows[:, 0]]


def make_spec(
    name: str, build: Callable[[], object], buckets: Sequence[Bucket] = (ROW,)
) -> ModelSpec:
    """Describe a network whose weights are the same each time."""

    def seeded() -> object:
        torch.manual_seed(7)
        return build()

    return ModelSpec(name, seeded, tuple(buckets), Sample)


TIED = make_spec("tied", Tied)
CONV = make_spec("conv", Conv, (Bucket((3, 6, 6)), Bucket((3, 12, 12))))
RECURRENT = make_spec("recurrent", Recurrent, (Bucket((5, 4)),))
SAME = make_spec("same", Same)
HALF = make_spec("half", Same, (Bucket((8,), "bfloat16"),))
IN_PLACE = make_spec("in_place", InPlace)
FRAGILE = make_spec("fragile", Fragile)
WORDY = make_spec("wordy", Wordy)
WEIGHTY = make_spec("weighty", lambda: Weighty(4096))  # 16 MiB


def cpu_spec(pool_mib: int = 64) -> DeviceSpec:
    """Describe a small CPU device."""
    return DeviceSpec("cpu:0", "cpu", (pool_mib + 16) * MIB, 16 * MIB, False, 5e9, 5e9)


def load(spec: ModelSpec, size_bytes: int, *, offset: int = GUARD) -> LoadWeights:
    """Order a load."""
    return LoadWeights(1, "cpu:0", spec.name, "fp32", offset, size_bytes)


def evict(spec: ModelSpec, size_bytes: int, *, offset: int = GUARD) -> EvictWeights:
    """Order an eviction."""
    return EvictWeights(1, "cpu:0", spec.name, offset, size_bytes)


def move(spec: ModelSpec, size_bytes: int, *, offset: int, new_offset: int) -> MoveWeights:
    """Order a move."""
    return MoveWeights(1, "cpu:0", spec.name, offset, new_offset, size_bytes)


def batch(spec: ModelSpec, sizes: Sequence[int], *, bucket: int = 0) -> RunBatch:
    """Order a batch of so many items per part."""
    shape = spec.buckets[bucket]
    lane = LaneKey(spec.name, shape.shape, shape.dtype)
    parts = tuple((number, 0, items) for number, items in enumerate(sizes))
    return RunBatch(1, "cpu:0", lane, sum(sizes), parts, True, None, 0)
