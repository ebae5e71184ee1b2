"""CUDA: what only a card can show; everything else is in the contract of all devices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from engine.devices.cuda import CudaDevice, _translate, describe_cuda
from engine.devices.weights import Images
from engine.effects import LoadWeights, MoveWeights
from engine.errors import DeviceError, Failed, OutOfMemoryError
from engine.units import MIB
from tests.engine.devices.nets import GUARD, WEIGHTY, batch, make_spec


class Greedy(torch.nn.Module):
    """Ask for more than any card has, when told so by its input."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.device.type == "cuda" and bool((x > 1e6).any()):
            torch.empty(1 << 50, dtype=torch.uint8, device=x.device)
        return x * 2


GREEDY = make_spec("greedy", Greedy)


@pytest.fixture(scope="module")
def images() -> Images:
    found = Images()
    for spec in (WEIGHTY, GREEDY):
        found.add(spec, ["cuda"])
    return found


@pytest.fixture
def device(images: Images) -> Iterator[CudaDevice]:
    made = CudaDevice(describe_cuda(0), images)
    made.start_worker()
    yield made
    made.close()


@pytest.mark.gpu
def test_weights_arrive_and_move_byte_for_byte(device: CudaDevice, images: Images) -> None:
    image = images[WEIGHTY.name]
    size = image.size_bytes
    device.load(LoadWeights(1, "cuda:0", WEIGHTY.name, "fp32", GUARD, size))
    offset = GUARD
    for new_offset in (GUARD + 512, GUARD + 8 * MIB, GUARD + 64 * MIB, GUARD):
        device.move(MoveWeights(1, "cuda:0", WEIGHTY.name, offset, new_offset, size))
        offset = new_offset
        assert torch.equal(
            device._arena[offset : offset + size].cpu(), images.block(image.spec.name)
        )


@pytest.mark.gpu
def test_out_of_memory_ends_the_batch_and_not_the_device(
    device: CudaDevice, images: Images
) -> None:
    size = images[GREEDY.name].size_bytes
    device.load(LoadWeights(1, "cuda:0", GREEDY.name, "fp32", GUARD, size))
    with pytest.raises(OutOfMemoryError):
        device.run(batch(GREEDY, [1]), [np.full((1, 8), 1e7, np.float32)])
    (output,) = device.run(batch(GREEDY, [1]), [np.ones((1, 8), np.float32)])
    assert np.array_equal(np.asarray(output), np.full((1, 8), 2))


@pytest.mark.gpu
def test_its_batches_leave_nothing_behind_in_the_pool(
    device: CudaDevice, images: Images
) -> None:
    size = images[GREEDY.name].size_bytes
    device.load(LoadWeights(1, "cuda:0", GREEDY.name, "fp32", GUARD, size))
    device.run(batch(GREEDY, [3]), [np.ones((3, 8), np.float32)])
    before = torch.cuda.memory_allocated(0)
    for _ in range(5):
        device.run(batch(GREEDY, [3]), [np.ones((3, 8), np.float32)])
    assert torch.cuda.memory_allocated(0) == before


@pytest.mark.gpu
def test_truth_is_at_least_what_this_process_holds(device: CudaDevice) -> None:
    spec = device.spec
    assert device.truth_bytes() >= spec.pool_bytes - (spec.workspace_bytes or 0)


def test_errors_of_a_card_are_told_apart_by_what_can_be_done() -> None:
    assert isinstance(_translate("m", torch.OutOfMemoryError("CUDA")), OutOfMemoryError)
    cublas = RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate")
    assert isinstance(_translate("m", cublas), OutOfMemoryError)
    lost = RuntimeError("CUDA error: an illegal memory access was encountered")
    assert isinstance(_translate("m", lost), DeviceError)
    assert isinstance(_translate("m", ValueError("no")), Failed)
