"""Packing: one block, the same numbers, wherever it lies."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from engine.devices.dry_run import make_input
from engine.devices.packing import ALIGNMENT, Weights, make_skeleton, pack
from engine.spec import ModelSpec
from tests.engine.devices.nets import CONV, RECURRENT, SAME, TIED, Tied


def build(spec: ModelSpec) -> nn.Module:
    module = spec.build()
    assert isinstance(module, nn.Module)
    return module.eval()


def arena_for(block: torch.Tensor) -> torch.Tensor:
    return torch.full((block.nbytes + 8 * ALIGNMENT,), 255, dtype=torch.uint8)


@pytest.mark.parametrize("spec", [TIED, CONV, RECURRENT, SAME], ids=lambda spec: spec.name)
def test_outputs_are_the_same_to_the_bit_before_packing_after_it_and_after_a_move(
    spec: ModelSpec,
) -> None:
    module = build(spec)
    x = torch.randn_like(make_input(spec.buckets[0], 3))
    with torch.no_grad():
        before = module(x).clone()
        layout, block = pack(module)
        weights = Weights(make_skeleton(module, layout), layout)
        arena = arena_for(block)
        for offset in (0, 3 * ALIGNMENT):
            arena.fill_(255)
            arena[offset : offset + block.nbytes].copy_(block)
            weights.point(arena, offset)
            assert torch.equal(weights.module(x), before)


def test_tied_weights_and_views_of_them_take_their_memory_once() -> None:
    module = Tied()
    layout, block = pack(module)
    own = {id(p): p.nbytes for p in module.parameters()}
    assert block.nbytes == layout.size_bytes
    # One weight with its transposed view, two biases and a buffer: four blocks of 512 B.
    assert sum(own.values()) + 64 <= layout.size_bytes == 4 * ALIGNMENT
    weights = Weights(make_skeleton(module, layout), layout)
    weights.point(block, 0)
    packed = weights.module
    assert packed.second.weight is packed.first.weight
    assert packed.turned.data_ptr() == packed.first.weight.data_ptr()
    assert packed.turned.stride() == (1, 8)


def test_channels_last_weights_stay_channels_last() -> None:
    module = build(CONV)
    layout, block = pack(module)
    weights = Weights(make_skeleton(module, layout), layout)
    weights.point(block, 0)
    kernel = weights.module.conv.weight
    assert kernel.is_contiguous(memory_format=torch.channels_last)


def test_of_a_storage_only_the_used_bytes_are_packed() -> None:
    module = nn.Linear(4, 4, bias=False)
    module.weight = nn.Parameter(torch.arange(4000.0)[1000:1016].view(4, 4))
    layout, block = pack(module)
    assert layout.size_bytes == ALIGNMENT
    weights = Weights(make_skeleton(module, layout), layout)
    weights.point(block, 0)
    assert torch.equal(weights.module.weight, torch.arange(1000.0, 1016.0).view(4, 4))


def test_a_module_without_weights_takes_the_smallest_block() -> None:
    layout, block = pack(nn.ReLU())
    assert (layout.slots, layout.size_bytes, block.nbytes) == ((), ALIGNMENT, ALIGNMENT)


def test_a_skeleton_has_shapes_but_no_memory() -> None:
    module = build(CONV)
    layout, _ = pack(module)
    skeleton = make_skeleton(module, layout)
    assert {tensor.device.type for tensor in skeleton.parameters()} == {"meta"}
    assert {tensor.device.type for tensor in skeleton.buffers()} == {"meta"}


def test_dropped_weights_cannot_be_run_by_mistake() -> None:
    module = build(TIED)
    layout, block = pack(module)
    weights = Weights(make_skeleton(module, layout), layout)
    weights.point(block, 0)
    weights.drop()
    with pytest.raises(RuntimeError):
        weights.module(torch.zeros(1, 8))


def test_sparse_weights_and_those_elsewhere_are_not_packed() -> None:
    module = nn.Linear(2, 2)
    with pytest.raises(TypeError, match="dense"):
        pack(module.to("meta"))
