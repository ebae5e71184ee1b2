"""CPU: batches equal single items, whatever their parts; memory comes and goes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.devices.cpu import CpuDevice
from engine.devices.weights import Images
from engine.effects import LoadWeights
from engine.errors import Failed, InputError, OutOfMemoryError
from engine.spec import DeviceSpec, ModelSpec
from engine.units import MIB
from tests.engine.devices.nets import (
    CONV,
    FRAGILE,
    GUARD,
    HALF,
    IN_PLACE,
    SAME,
    TIED,
    WEIGHTY,
    batch,
    cpu_spec,
    evict,
    load,
    move,
)

SPECS = (CONV, FRAGILE, HALF, IN_PLACE, SAME, TIED, WEIGHTY)


@pytest.fixture(scope="module")
def images() -> Images:
    found = Images()
    for spec in SPECS:
        found.add(spec, ["cpu"])
    return found


@pytest.fixture
def device(images: Images) -> Iterator[CpuDevice]:
    made = CpuDevice(cpu_spec(), images)
    made.start_worker()
    yield made
    made.close()


def put(device: CpuDevice, images: Images, *, spec: ModelSpec, offset: int = GUARD) -> int:
    size_bytes = images[spec.name].size_bytes
    device.load(load(spec, size_bytes, offset=offset))
    return size_bytes


def rows(*sizes: int) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    return [rng.standard_normal((items, 8), dtype=np.float32) for items in sizes]


def resident_bytes(device: CpuDevice) -> int:
    """Return what the system holds of the device's arena and may not take at will.

    The kernel may have made one mapping of the arena and its neighbours, which
    count then too: only differences mean something.
    """
    found, is_ours = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split(" ", 1)[0]:
            start, end = (int(part, 16) for part in line.split(" ", 1)[0].split("-"))
            is_ours = start < device._span[1] and device._span[0] < end
        elif is_ours and line.startswith("Rss:"):
            found += int(line.split()[1]) * 1024
        elif is_ours and line.startswith("LazyFree:"):
            found -= int(line.split()[1]) * 1024
    return found


def test_a_batch_equals_its_items_alone_and_splits_by_parts(
    device: CpuDevice, images: Images
) -> None:
    put(device, images, spec=TIED)
    parts = rows(1, 3, 2)
    outputs = device.run(batch(TIED, [1, 3, 2]), parts)
    assert [len(output) for output in outputs] == [1, 3, 2]
    for part, output in zip(parts, outputs, strict=True):
        for row, answer in zip(part, output, strict=True):
            (alone,) = device.run(batch(TIED, [1]), [row[None]])
            np.testing.assert_allclose(alone[0], answer, rtol=1e-5, atol=1e-5)


def test_every_output_is_of_the_kind_of_its_input(device: CpuDevice, images: Images) -> None:
    put(device, images, spec=TIED)
    arrays = rows(2, 1, 1)
    tensors = [torch.from_numpy(array) for array in arrays]
    for parts in (arrays, tensors, [arrays[0], tensors[1], arrays[2]], tensors[:1], arrays[:1]):
        outputs = device.run(batch(TIED, [len(part) for part in parts]), parts)
        assert [type(output) for output in outputs] == [type(part) for part in parts]
        expected = device.run(batch(TIED, [len(part) for part in parts]), arrays[: len(parts)])
        for output, wanted in zip(outputs, expected, strict=True):
            assert np.array_equal(np.asarray(output), wanted)


def test_a_tensor_that_comes_out_may_be_changed_by_its_caller(
    device: CpuDevice, images: Images
) -> None:
    put(device, images, spec=TIED)
    for parts in ([torch.zeros(2, 8)], [torch.zeros(1, 8), torch.zeros(1, 8)]):
        output = device.run(batch(TIED, [len(part) for part in parts]), parts)[0]
        assert isinstance(output, torch.Tensor)
        output += 1
        assert not output.is_inference()


def test_bfloat16_which_numpy_lacks_goes_in_and_out_as_tensors(
    device: CpuDevice, images: Images
) -> None:
    put(device, images, spec=HALF)
    parts = [torch.ones(items, 8, dtype=torch.bfloat16) for items in (1, 2)]
    outputs = device.run(batch(HALF, [1, 2]), parts)
    for part, output in zip(parts, outputs, strict=True):
        assert isinstance(output, torch.Tensor)
        assert torch.equal(output, part)
        assert not output.is_inference()


def test_an_output_shares_memory_neither_with_its_input_nor_with_the_arena(
    device: CpuDevice, images: Images
) -> None:
    put(device, images, spec=SAME)
    x = np.ones((2, 8), np.float32)
    (output,) = device.run(batch(SAME, [2]), [x])
    assert np.array_equal(np.asarray(output), x)
    assert not np.shares_memory(np.asarray(output), x)
    put(device, images, spec=WEIGHTY, offset=4 * MIB)
    (view,) = device.run(batch(WEIGHTY, [2]), [x])
    start, end = device._span
    assert not start <= np.asarray(view).__array_interface__["data"][0] < end
    assert np.asarray(view).shape == (2, 1024)


def test_a_model_that_writes_to_its_input_gets_a_copy(
    device: CpuDevice, images: Images
) -> None:
    put(device, images, spec=IN_PLACE)
    x = np.zeros((2, 8), np.float32)
    (output,) = device.run(batch(IN_PLACE, [2]), [x])
    assert np.array_equal(np.asarray(output), np.ones((2, 8)))
    assert not x.any()


def test_a_read_only_or_reversed_array_is_accepted(device: CpuDevice, images: Images) -> None:
    put(device, images, spec=FRAGILE)
    x = np.arange(16, dtype=np.float32).reshape(2, 8)
    x.flags.writeable = False
    for part in (x, x[::-1], x[:, ::-1]):
        (output,) = device.run(batch(FRAGILE, [2]), [part])
        assert np.array_equal(np.asarray(output), part * 2)


def test_two_shapes_of_one_model_run_on_the_same_weights(
    device: CpuDevice, images: Images
) -> None:
    put(device, images, spec=CONV)
    for bucket, width in ((0, 6), (1, 12)):
        x = torch.rand(2, 3, width, width)
        (output,) = device.run(batch(CONV, [2], bucket=bucket), [x])
        assert np.asarray(output).shape == (2, 4 * (width - 2) ** 2)


def test_weights_give_the_same_answers_after_a_move_and_after_a_reload(
    device: CpuDevice, images: Images
) -> None:
    size = put(device, images, spec=WEIGHTY)
    x = rows(1)
    (before,) = device.run(batch(WEIGHTY, [1]), x)
    places = (GUARD, GUARD + 512, GUARD + 20 * MIB, GUARD + 10 * MIB, GUARD)
    for offset, new_offset in pairwise(places):
        device.move(move(WEIGHTY, size, offset=offset, new_offset=new_offset))
        (after,) = device.run(batch(WEIGHTY, [1]), x)
        assert np.array_equal(np.asarray(before), np.asarray(after))
    device.evict(evict(WEIGHTY, size))
    put(device, images, spec=WEIGHTY, offset=GUARD + 512)
    (after,) = device.run(batch(WEIGHTY, [1]), x)
    assert np.array_equal(np.asarray(before), np.asarray(after))


def test_an_eviction_gives_the_memory_back_to_the_system(
    device: CpuDevice, images: Images
) -> None:
    before = resident_bytes(device)
    size = put(device, images, spec=WEIGHTY)
    assert size <= resident_bytes(device) - before <= size + 4 * MIB
    device.move(move(WEIGHTY, size, offset=GUARD, new_offset=GUARD + 20 * MIB))
    assert resident_bytes(device) - before <= size + 8 * MIB
    assert device.truth_bytes() == size
    device.evict(evict(WEIGHTY, size, offset=GUARD + 20 * MIB))
    assert resident_bytes(device) - before <= 8 * MIB
    assert device.truth_bytes() == 0


def test_batches_are_not_disturbed_by_loads_and_evictions_beside_them(
    device: CpuDevice, images: Images
) -> None:
    put(device, images, spec=TIED)
    x = rows(2)
    (wanted,) = device.run(batch(TIED, [2]), x)
    differences: list[int] = []
    is_over = threading.Event()

    def work() -> None:
        device.start_worker()
        while not is_over.is_set():
            (output,) = device.run(batch(TIED, [2]), x)
            differences.append(int(not np.array_equal(np.asarray(output), np.asarray(wanted))))

    worker = threading.Thread(target=work)
    worker.start()
    for _ in range(20):
        size = put(device, images, spec=WEIGHTY, offset=4 * MIB)
        device.evict(evict(WEIGHTY, size, offset=4 * MIB))
    is_over.set()
    worker.join()
    assert differences
    assert not sum(differences)


def test_an_error_of_the_model_fails_the_batch_and_nothing_else(
    device: CpuDevice, images: Images
) -> None:
    put(device, images, spec=FRAGILE)
    with pytest.raises(Failed, match="fragile: ValueError: a negative number") as caught:
        device.run(batch(FRAGILE, [1]), [np.full((1, 8), -1, np.float32)])
    assert isinstance(caught.value.__cause__, ValueError)
    with pytest.raises(OutOfMemoryError, match="fragile: no memory"):
        device.run(batch(FRAGILE, [1]), [np.full((1, 8), 1e7, np.float32)])
    (output,) = device.run(batch(FRAGILE, [1]), [np.ones((1, 8), np.float32)])
    assert np.array_equal(np.asarray(output), np.full((1, 8), 2))


def test_a_precision_that_nobody_knows_is_refused_in_a_sentence(device: CpuDevice) -> None:
    with pytest.raises(InputError, match="wanted one of fp32, bf16, int8"):
        device.load(LoadWeights(1, "cpu:0", "same", "fp4", GUARD, 512))


def test_an_arena_that_no_system_has_is_refused_in_a_sentence(images: Images) -> None:
    spec = DeviceSpec("cpu:0", "cpu", 1 << 62, 0, False, 1e9, 1e9)
    with pytest.raises(OutOfMemoryError, match="make it smaller"):
        CpuDevice(spec, images)
