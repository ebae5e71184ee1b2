"""Tests of weights at a lower precision: what they take, what they compute, how they move."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from engine.devices.cpu import CpuDevice
from engine.devices.lower import Lower, make_lower, measure_change
from engine.devices.materialise import ReducedWeights, scratch_bytes
from engine.devices.packing import pack
from engine.devices.reduced import plan_reduced, write_reduced
from engine.devices.weights import Images
from engine.effects import ConvertWeights, EvictWeights, LoadWeights, MoveWeights, RunBatch
from engine.errors import Failed
from engine.rules import PRECISIONS
from engine.spec import Bucket, DeviceSpec, LaneKey, ModelSpec, Sample
from engine.units import MIB

LOWER = PRECISIONS[1:]
WORST = {"bf16": 0.01, "int8": 0.03}


class Attention(nn.Module):
    """Attend to a sequence of 32 numbers per place."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)
        self.last = nn.Linear(32, 40)

    def forward(self, x: Tensor) -> Tensor:
        """Attend, then project: (items, 6, 32) to (items, 6, 40)."""
        return self.last(self.attention(x, x, x, need_weights=False)[0])


class Recurrent(nn.Module):
    """Remember what came before."""

    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.LSTM(32, 48, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        """Run over (items, 6, 32), return (items, 6, 48)."""
        return self.cells(x)[0]


class Tied(nn.Module):
    """Look words up and project back with the same weights."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(64, 32)
        self.back = nn.Linear(32, 64, bias=False)
        self.back.weight = self.words.weight

    def forward(self, x: Tensor) -> Tensor:
        """Return scores (items, 64) of float32 (items, 4) word numbers."""
        return self.back(self.words(x.long()).mean(1))


class Functional(nn.Module):
    """Use a child's weights without calling it."""

    def __init__(self) -> None:
        super().__init__()
        self.child = nn.Linear(64, 64)

    def forward(self, x: Tensor) -> Tensor:
        """Multiply (items, 64) by the child's weights."""
        return torch.nn.functional.linear(x, self.child.weight, self.child.bias)


def stack() -> nn.Module:
    return nn.Sequential(*(nn.Linear(256, 256) for _ in range(4)))


def conv() -> nn.Module:
    net = nn.Sequential(
        nn.Conv2d(3, 32, 3), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 40, 3)
    )
    return net.to(memory_format=torch.channels_last)


CASES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "stack": (stack, (256,)),
    "conv": (conv, (3, 12, 12)),
    "attention": (Attention, (6, 32)),
    "recurrent": (Recurrent, (6, 32)),
    "tied": (Tied, (4,)),
    "functional": (Functional, (64,)),
}


def spec(name: str) -> ModelSpec:
    make, shape = CASES[name]

    def build() -> nn.Module:
        torch.manual_seed(3)
        return make().eval()

    def inputs(seed: int) -> Sample:
        generator = torch.Generator().manual_seed(seed)
        x = torch.rand((3, *shape), generator=generator)
        return Sample((x * 60).floor().numpy() if name == "tied" else x.numpy())

    return ModelSpec(name, build, (Bucket(shape),), inputs)


@pytest.fixture(scope="module")
def images() -> Images:
    found = Images()
    for name in CASES:
        found.add(spec(name), ["cpu"])
    return found


def lower_of(images: Images, name: str, precision: str) -> Lower:
    return make_lower(
        images[name].source(images.block(name)), next(p for p in LOWER if p == precision)
    )


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("precision", LOWER)
def test_every_kind_of_module_computes_nearly_the_same_from_reduced_weights(
    images: Images, name: str, precision: str
):
    lower = lower_of(images, name, precision)
    assert 0 < lower.change.relative < WORST[precision]
    assert lower.profiles[0].output_change == lower.change.relative
    assert lower.profiles[0].key.precision == precision


def test_a_stack_of_layers_takes_a_half_and_a_quarter_and_one_layer_of_scratch(images: Images):
    full = images["stack"].size_bytes
    for precision, share in (("bf16", 0.5), ("int8", 0.25)):
        lower = lower_of(images, "stack", precision)
        assert lower.size_bytes == pytest.approx(full * share, rel=0.05)
        assert scratch_bytes(lower.reduced, lower.depth) == 256 * 256 * 4


def test_a_parent_that_reaches_into_its_child_has_the_weights_made_where_it_runs(
    images: Images,
):
    assert lower_of(images, "functional", "int8").depth == 0
    assert lower_of(images, "stack", "int8").depth > 1


def test_nothing_of_the_full_weights_is_kept_after_a_pass_and_none_runs_after_a_drop(
    images: Images,
):
    image = images["stack"]
    lower = lower_of(images, "stack", "int8")
    block = torch.zeros(lower.size_bytes, dtype=torch.uint8)
    write_reduced(images.block("stack"), lower.reduced, target=block)
    weights = lower.weights(image.source(images.block("stack")))
    weights.point(block, 0)
    x = torch.rand(2, 256)
    with torch.inference_mode():
        first = weights.module(x)
    assert all(
        p.numel() == 0 for p in weights.module.parameters() if p.dim() != 1 or not len(p)
    )
    moved = torch.zeros(lower.size_bytes + 4096, dtype=torch.uint8)
    moved[1024 : 1024 + lower.size_bytes] = block
    block.zero_()
    weights.point(moved, 1024)
    with torch.inference_mode():
        assert torch.equal(weights.module(x), first)
    weights.drop()
    with pytest.raises((AssertionError, RuntimeError)), torch.inference_mode():
        weights.module(x)


def test_a_channel_of_zeros_stays_zero_and_strides_are_kept():
    torch.manual_seed(0)
    module = nn.Conv2d(8, 32, 3).to(memory_format=torch.channels_last)
    with torch.no_grad():
        module.weight[3] = 0
    layout, block = pack(module)
    reduced = plan_reduced(layout, "int8")
    small = torch.zeros(reduced.size_bytes, dtype=torch.uint8)
    write_reduced(block, reduced, target=small)
    weights = ReducedWeights(module, layout, reduced=reduced, depth=0)
    weights.point(small, 0)
    seen: list[Tensor] = []
    weights.module.register_forward_pre_hook(
        lambda m, _: seen.append(m.weight.detach().clone())
    )
    with torch.inference_mode():
        weights.module(torch.rand(1, 8, 6, 6))
    (weight,) = seen
    assert weight.stride() == module.weight.stride()
    assert not weight[3].any()
    largest = float(module.weight.detach().abs().max())
    assert float((weight - module.weight.detach()).abs().max()) < largest / 127


def test_a_change_is_zero_between_equals_and_counts_rows_that_decide_otherwise():
    a = torch.tensor([[1.0, 2.0], [3.0, 1.0]])
    assert measure_change(a, a).relative == 0
    b = torch.tensor([[2.5, 2.0], [3.0, 1.0]])
    assert measure_change(a, b).decided_otherwise == 0.5


def batch(name: str) -> RunBatch:
    shape = CASES[name][1]
    key = LaneKey(name, shape, "float32")
    return RunBatch(1, "cpu:0", key, 3, ((1, 0, 3),), True, None, MIB)


@pytest.mark.parametrize("name", ["stack", "conv", "attention"])
def test_a_device_converts_there_and_back_and_the_first_results_return_bit_for_bit(
    images: Images, name: str
):
    device = CpuDevice(DeviceSpec("cpu:0", "cpu", 64 * MIB, 0, False, 1e9, 1e9), images)
    size, at = images[name].size_bytes, 2 * MIB
    x = [spec(name).inputs(5).payload]
    device.load(LoadWeights(1, "cpu:0", name, "fp32", at, size))
    (full,) = device.run(batch(name), x)  # type: ignore[arg-type]  # an array is a payload
    for precision in LOWER:
        lower = images.lower(name, precision).size_bytes
        device.convert(ConvertWeights(2, "cpu:0", name, precision, at, at, lower))
        assert device.truth_bytes() == lower
        (found,) = device.run(batch(name), x)  # type: ignore[arg-type]  # as above
        change = np.linalg.norm(np.asarray(found) - np.asarray(full))
        assert 0 < change < WORST[precision] * np.linalg.norm(np.asarray(full))
        device.move(MoveWeights(3, "cpu:0", name, at, at + 4096, lower))
        at += 4096
        (moved,) = device.run(batch(name), x)  # type: ignore[arg-type]  # as above
        assert np.array_equal(np.asarray(moved), np.asarray(found))
    device.convert(ConvertWeights(4, "cpu:0", name, "fp32", at, 20 * MIB, size))
    (again,) = device.run(batch(name), x)  # type: ignore[arg-type]  # as above
    assert np.array_equal(np.asarray(again), np.asarray(full))
    device.evict(EvictWeights(5, "cpu:0", name, 20 * MIB, size))
    assert device.truth_bytes() == 0
    device.close()


def test_an_error_in_a_pass_leaves_no_full_weights_behind(images: Images):
    device = CpuDevice(DeviceSpec("cpu:0", "cpu", 64 * MIB, 0, False, 1e9, 1e9), images)
    size, at = images["stack"].size_bytes, 2 * MIB
    device.load(LoadWeights(1, "cpu:0", "stack", "fp32", at, size))
    small = images.lower("stack", "int8").size_bytes
    device.convert(ConvertWeights(2, "cpu:0", "stack", "int8", at, at, small))
    with pytest.raises(Failed):
        device.run(batch("stack"), [np.zeros((3, 7), np.float32)])
    (good,) = device.run(batch("stack"), [np.zeros((3, 256), np.float32)])
    assert np.isfinite(np.asarray(good)).all()
    device.close()
