"""Tests of how earlier places of weights are rebuilt."""

from __future__ import annotations

from engine.memory.replay import DeviceBlocks, WeightChange, replay
from engine.memory.state import BlockState

START = DeviceBlocks("gpu0", 100, 2, (BlockState(2, 10, "resident", "a"),))


def after(*changes: WeightChange) -> list[tuple[int, int, str]]:
    (device,) = replay([START], changes)
    return [(b.offset, b.size_bytes, b.model or b.kind) for b in device.blocks]


def test_without_changes_it_is_the_keyframe_with_its_holes():
    assert after() == [(0, 2, "guard"), (2, 10, "a"), (12, 88, "hole")]


def test_loads_moves_conversions_and_evictions_are_followed():
    changes = (
        WeightChange(1, "load", "gpu0", "b", 7, 40, 20),
        WeightChange(2, "evict", "gpu0", "a", 8),
        WeightChange(3, "move", "gpu0", "b", 9, 2, 20),
        WeightChange(4, "convert", "gpu0", "b", 10, 2, 10),
    )
    assert after(*changes) == [(0, 2, "guard"), (2, 10, "b"), (12, 88, "hole")]


def test_what_failed_is_undone():
    load = WeightChange(1, "load", "gpu0", "b", 7, 40, 20)
    move = WeightChange(2, "move", "gpu0", "a", 8, 60, 10)
    undone = after(
        load,
        move,
        WeightChange(3, "undo", "gpu0", "b", 7),
        WeightChange(4, "undo", "gpu0", "a", 8),
    )
    assert undone == after()


def test_a_lost_device_holds_nothing_and_others_are_not_touched():
    assert after(WeightChange(1, "lost", "gpu0")) == [(0, 2, "guard"), (2, 98, "hole")]
    assert after(WeightChange(1, "lost", "gpu1")) == after()
