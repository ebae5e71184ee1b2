"""Process memory: the parts add up, the limit is what books and reserves allow."""

from __future__ import annotations

import mmap

from engine.units import MIB
from ops.process_memory import SERVER_BYTES, ProcessMemory, held_bytes
from tests.ops.states import device, model, snapshot

EMPTY = snapshot(0, (device(),), ())


def test_the_parts_add_up_to_what_the_process_holds_beyond_its_baseline() -> None:
    readings = iter([100 * MIB, 300 * MIB])
    memory = ProcessMemory(EMPTY, lambda: next(readings))
    state = memory.state(
        snapshot(1, (device(truth_bytes=40 * MIB),), (model("digits"), model("far")))
    )
    assert state.weight_bytes == 40 * MIB
    assert state.host_bytes == 80 * MIB
    assert state.rest_bytes == 80 * MIB
    parts = state.baseline_bytes + state.weight_bytes + state.host_bytes + state.rest_bytes
    assert parts == state.held_bytes == 300 * MIB


def test_more_than_baseline_copies_and_devices_may_hold_is_over() -> None:
    held = [140 * MIB]
    here = snapshot(1, (device(), device("sim:0", kind="simulated")), (model("digits"),))
    memory = ProcessMemory(here, lambda: held[0])
    assert memory.state(here).baseline_bytes == 100 * MIB
    held[0] = (100 + 40 + 102) * MIB + SERVER_BYTES
    assert memory.state(here).most_bytes == held[0]
    assert not memory.state(here).is_over
    held[0] += 1
    assert memory.state(here).is_over


def test_copies_in_mapped_files_are_not_the_processs() -> None:
    memory = ProcessMemory(EMPTY, lambda: 0)
    here = snapshot(1, (), (model("digits", is_on_disk=True),))
    assert memory.state(here).host_bytes == 0


def test_what_was_offered_to_the_system_is_not_held() -> None:
    size = 256 * MIB  # the kernel notes large pages late, some of them at a time
    before = held_bytes()
    block = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    block.write(bytes(size))
    assert held_bytes() - before > size // 2
    block.madvise(mmap.MADV_FREE)
    assert held_bytes() - before < size // 2
    block.close()
