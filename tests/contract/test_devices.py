"""Contract: what the engine may expect of every device, real or simulated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from engine.devices.cpu import CpuDevice
from engine.devices.cuda import CudaDevice, describe_cuda
from engine.devices.simulated import SimulatedDevice
from engine.devices.weights import Images
from engine.effects import EvictWeights, LoadWeights, MoveWeights, RunBatch
from engine.ports import Device, Payload
from engine.spec import DeviceSpec, LaneKey, ModelSpec
from engine.units import MIB
from tests.engine.devices.nets import CONV, GUARD, TIED, cpu_spec

MODELS = (TIED, CONV)


def open_cpu(images: Images) -> Device:
    return CpuDevice(cpu_spec(), images)


def open_simulated(images: Images) -> Device:
    spec = DeviceSpec("sim:0", "simulated", 64 * MIB, 4 * MIB, True, 1e10, 1e11)
    return SimulatedDevice(spec, images)


def open_cuda(images: Images) -> Device:
    return CudaDevice(describe_cuda(0), images)


@dataclass
class Bench:
    """Give orders to a device as the core would."""

    device: Device
    images: Images

    def size(self, spec: ModelSpec) -> int:
        return self.images[spec.name].size_bytes

    def load(self, spec: ModelSpec, offset: int = GUARD) -> None:
        name = self.device.spec.name
        self.device.load(LoadWeights(1, name, spec.name, "fp32", offset, self.size(spec)))

    def evict(self, spec: ModelSpec, offset: int = GUARD) -> None:
        name = self.device.spec.name
        self.device.evict(EvictWeights(1, name, spec.name, offset, self.size(spec)))

    def move(self, spec: ModelSpec, *, offset: int, new_offset: int) -> None:
        name, size = self.device.spec.name, self.size(spec)
        self.device.move(MoveWeights(1, name, spec.name, offset, new_offset, size))

    def run(self, spec: ModelSpec, parts: Sequence[Payload]) -> Sequence[Payload]:
        bucket = spec.buckets[0]
        sizes = [len(part) for part in parts]
        batch = RunBatch(
            batch_id=1,
            device=self.device.spec.name,
            lane=LaneKey(spec.name, bucket.shape, bucket.dtype),
            items=sum(sizes),
            parts=tuple((number, 0, items) for number, items in enumerate(sizes)),
            is_whole=True,
            lease_offset=None,
            lease_bytes=self.images[spec.name].profiles[0].workspace_bytes(sum(sizes)),
        )
        return self.device.run(batch, parts)


@pytest.fixture(scope="module")
def images() -> Images:
    found = Images()
    kinds = ["cpu", "simulated", *(["cuda"] if torch.cuda.is_available() else [])]
    for spec in MODELS:
        found.add(spec, kinds)
    return found


@pytest.fixture(
    params=[
        open_cpu,
        open_simulated,
        pytest.param(open_cuda, marks=pytest.mark.gpu),
    ],
    ids=["cpu", "simulated", "cuda"],
)
def bench(request: pytest.FixtureRequest, images: Images) -> Iterator[Bench]:
    make: Callable[[Images], Device] = request.param
    device = make(images)
    device.start_worker()
    yield Bench(device, images)
    device.close()


def inputs(spec: ModelSpec, *sizes: int) -> list[np.ndarray]:
    rng = np.random.default_rng(5)
    shape = spec.buckets[0].shape
    return [rng.standard_normal((items, *shape), dtype=np.float32) for items in sizes]


def same(first: Payload, second: Payload) -> bool:
    return np.array_equal(np.asarray(first), np.asarray(second), equal_nan=True)


def test_its_description_leaves_room_for_weights_and_leases(bench: Bench) -> None:
    spec = bench.device.spec
    assert 0 < (spec.workspace_bytes or 0) + GUARD < spec.pool_bytes or not spec.workspace_bytes
    assert spec.pool_bytes + spec.reserve_bytes == spec.capacity_bytes
    assert spec.load_bytes_per_s > 0 < spec.move_bytes_per_s


def test_a_batch_has_one_output_per_part_with_a_row_per_item(bench: Bench) -> None:
    bench.load(TIED)
    parts = inputs(TIED, 1, 3, 2)
    outputs = bench.run(TIED, parts)
    assert [len(output) for output in outputs] == [1, 3, 2]
    assert len({np.asarray(output).shape[1:] for output in outputs}) == 1


def test_an_output_is_of_the_kind_of_its_input_and_in_host_memory(bench: Bench) -> None:
    bench.load(TIED)
    array, other = inputs(TIED, 2, 1)
    outputs = bench.run(TIED, [array, torch.from_numpy(other)])
    assert isinstance(outputs[0], np.ndarray)
    assert isinstance(outputs[1], torch.Tensor)
    assert outputs[1].device.type == "cpu"


def test_an_output_outlives_later_batches_evictions_and_the_device(bench: Bench) -> None:
    bench.load(TIED)
    (output,) = bench.run(TIED, inputs(TIED, 2))
    kept = np.array(np.asarray(output))
    bench.run(TIED, inputs(TIED, 5))
    bench.evict(TIED)
    bench.load(CONV)
    assert same(output, kept)


def test_a_split_request_gives_the_rows_that_it_gives_whole(bench: Bench) -> None:
    bench.load(CONV)
    (whole,) = inputs(CONV, 4)
    (together,) = bench.run(CONV, [whole])
    apart = bench.run(CONV, [whole[:1], whole[1:]])
    joined = np.concatenate([np.asarray(piece) for piece in apart])
    np.testing.assert_allclose(joined, np.asarray(together), rtol=1e-4, atol=1e-5)


def test_answers_are_the_same_after_a_move_and_after_a_reload(bench: Bench) -> None:
    bench.load(TIED)
    parts = inputs(TIED, 2)
    (before,) = bench.run(TIED, parts)
    far = GUARD + 4 * MIB
    for offset, new_offset in ((GUARD, GUARD + 512), (GUARD + 512, far), (far, GUARD)):
        bench.move(TIED, offset=offset, new_offset=new_offset)
        assert same(bench.run(TIED, parts)[0], before)
    bench.evict(TIED)
    bench.load(TIED, offset=far)
    assert same(bench.run(TIED, parts)[0], before)


def test_models_lie_side_by_side(bench: Bench) -> None:
    bench.load(TIED)
    before = bench.run(TIED, inputs(TIED, 2))
    bench.load(CONV, offset=GUARD + bench.size(TIED))
    bench.run(CONV, inputs(CONV, 2))
    assert same(bench.run(TIED, inputs(TIED, 2))[0], before[0])


def test_truth_never_falls_below_what_is_loaded(bench: Bench) -> None:
    assert bench.device.truth_bytes() >= 0
    bench.load(TIED)
    assert bench.device.truth_bytes() >= bench.size(TIED)
