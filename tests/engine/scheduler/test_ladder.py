"""Tests of the ladder: each way to make room, in the policy's order, with its decision."""

from __future__ import annotations

import pytest

from engine.decisions import Decision
from engine.effects import (
    ConvertWeights,
    EvictWeights,
    LoadWeights,
    MoveWeights,
)
from engine.events import (
    Command,
    ConvertFailed,
    ConvertFinished,
    EvictFinished,
    FailureKind,
    LoadFinished,
    MoveFailed,
    MoveFinished,
    OperatorCommand,
)
from engine.memory.preview import preview
from engine.policy import Policy
from engine.spec import LaneKey
from engine.units import MIB
from tests.engine.scheduler.table import Table

QUICK = {"min_residence_ms": 0.0, "protect_idle_ms": 0.0}


def table_with(*ladder: str, pool_mib: int = 40, **fields: object) -> Table:
    """Return a table whose policy makes room by these ways."""
    policy = Policy().replace(
        default={"precisions": ("fp32", "bf16", "int8")},
        memory={**QUICK, "ladder": (*ladder, "wait"), **fields},
    )
    return Table(policy, pool_mib=pool_mib)


def serve(table: Table, lane: LaneKey, ms: float) -> None:
    """Let one request of a lane run to its end."""
    table.at(ms).submit(lane)
    table.finish_loads()
    for batch in table.batches():
        table.finish(batch)


def holed(*ladder: str, **fields: object) -> tuple[Table, LaneKey]:
    """Return a table with holes of 10 and 20 MiB around a resident, and a model of 24."""
    table = table_with(*ladder, **fields)
    lanes = [table.model(name, weight_mib=10) for name in ("a", "b")]
    wanted = table.model("wanted", weight_mib=24)
    serve(table, lanes[0], 0)
    serve(table, lanes[1], 1)
    table.tell(OperatorCommand(Command.EVICT, "ada", "a"))
    for eviction in table.take(EvictWeights):
        table.tell(EvictFinished(eviction.eviction_id, 0, eviction.size_bytes))
    return table, wanted


def rungs(table: Table) -> list[tuple[str, object]]:
    """Return (rung, outcome) of the room decisions so far."""
    found = [e for e in table.log if isinstance(e, Decision)]
    return [
        (d.reason.value, dict(d.numbers).get("outcome", "")) for d in found if d.kind == "room"
    ]


def test_a_move_opens_the_hole_where_it_costs_less_than_the_load_it_saves():
    table, wanted = holed("evict", "compact")
    for _ in range(5):
        table.at(2).submit(LaneKey("b", (1,), "float32"))
        for batch in table.batches():
            table.finish(batch)
    table.log.clear()
    table.at(3).submit(wanted)
    (move,) = table.take(MoveWeights)
    assert (move.model, move.offset - move.new_offset) == ("b", 10 * MIB)
    assert ("compact", "found") in rungs(table)
    assert table.take(EvictWeights) == []
    assert table.take(LoadWeights) == [], "the bytes are not there before the move has ended"
    table.at(4).tell(MoveFinished(move.move_id, 1, move.size_bytes))
    assert [load.model for load in table.take(LoadWeights)] == ["wanted"]
    assert table.snapshot().memory.devices[0].moved_bytes == 10 * MIB


def test_a_model_that_is_being_moved_runs_nothing_until_it_lies_still():
    table, wanted = holed("compact", "evict")
    table.at(3).submit(wanted)
    (move,) = table.take(MoveWeights)
    table.at(3).submit(LaneKey("b", (1,), "float32"))
    assert table.batches() == []
    assert table.snapshot().memory.devices[0].residents[0].is_changing
    table.at(4).tell(MoveFinished(move.move_id, 1, move.size_bytes))
    assert [batch.lane.model for batch in table.batches()] == ["b"]


def test_a_failed_move_leaves_the_weights_where_they_are_and_is_not_tried_again():
    table, wanted = holed("compact", "evict")
    table.at(3).submit(wanted)
    (move,) = table.take(MoveWeights)
    table.at(4).tell(MoveFailed(move.move_id, 1, FailureKind.ERROR, "OSError: stuck"))
    state = table.snapshot().memory.devices[0]
    assert table.take(MoveWeights) == []
    assert not any(r.is_movable for r in state.residents)
    assert [e.model for e in table.take(EvictWeights)] == ["b"], "the next way is tried"


def test_moves_wait_for_their_budget_and_the_waiting_is_woken_when_it_is_paid_off():
    table, wanted = holed("compact", compaction_mib_per_s=1000.0)
    table.tell(OperatorCommand(Command.COMPACT, "ada"))
    (move,) = table.take(MoveWeights)
    table.tell(MoveFinished(move.move_id, 1, move.size_bytes))
    table.at(2).submit(wanted)
    assert [load.model for load in table.take(LoadWeights)] == ["wanted"]
    again, second = holed("compact", compaction_mib_per_s=1.0)
    device = again.core._books.devices["sim:0"]
    device.debt_bytes, device.debt_at_ns = MIB, again.now_ns
    again.at(3).submit(second)
    assert again.take(MoveWeights) == []
    again.at(1_500)
    assert [m.model for m in again.take(MoveWeights)] == ["b"]


def test_without_a_budget_nothing_moves():
    table, wanted = holed("compact", "evict", compaction_mib_per_s=0.0)
    table.at(3).submit(wanted)
    assert table.take(MoveWeights) == []
    assert [e.model for e in table.take(EvictWeights)] == ["b"]


def test_the_preview_says_what_the_operators_compaction_then_does():
    table, _ = holed("evict")
    seen = preview(table.snapshot().memory.devices[0])
    assert seen is not None
    assert seen.opened_bytes > seen.hole_bytes
    table.tell(OperatorCommand(Command.COMPACT, "ada", "", "sim:0"))
    (move,) = table.take(MoveWeights)
    assert [(m.model, m.offset, m.new_offset) for m in seen.moves] == [
        (move.model, move.offset, move.new_offset)
    ]
    table.tell(MoveFinished(move.move_id, 1, move.size_bytes))
    assert table.snapshot().memory.devices[0].largest_hole_bytes == seen.opened_bytes
    assert preview(table.snapshot().memory.devices[0]) is None


def full(*ladder: str, scratch_mib: int = 1, **fields: object) -> tuple[Table, LaneKey]:
    """Return a table with one idle resident of 24 of 40 MiB, and a model of 18."""
    table = table_with(*ladder, **fields)
    lane = table.model("a", weight_mib=24)
    table.reduced("a", weight_mib=24, scratch_mib=scratch_mib)
    wanted = table.model("wanted", weight_mib=18)
    serve(table, lane, 0)
    return table, wanted


def test_a_conversion_makes_room_and_the_bytes_are_held_until_it_has_ended():
    table, wanted = full("convert", "evict")
    table.at(1).submit(wanted)
    (conversion,) = table.take(ConvertWeights)
    assert (conversion.model, conversion.precision) == ("a", "bf16")
    assert conversion.new_offset == conversion.offset
    assert table.take(LoadWeights) == []
    table.at(2).tell(ConvertFinished(conversion.convert_id, 1, conversion.new_size_bytes))
    assert [load.model for load in table.take(LoadWeights)] == ["wanted"]
    (resident, *_) = table.snapshot().memory.devices[0].residents
    assert (resident.precision, resident.size_bytes) == ("bf16", 12 * MIB)


def test_a_failed_conversion_gives_the_whole_block_back_and_the_next_way_is_tried():
    table, wanted = full("convert", "evict")
    table.at(1).submit(wanted)
    (conversion,) = table.take(ConvertWeights)
    failed = ConvertFailed(conversion.convert_id, 1, FailureKind.ERROR, "ValueError: odd")
    table.at(2).tell(failed)
    (again,) = table.take(ConvertWeights)
    assert again.precision == "int8", "bf16 failed once and is not tried again"
    table.at(3).tell(ConvertFailed(again.convert_id, 1, FailureKind.ERROR, "ValueError: odd"))
    assert [e.model for e in table.take(EvictWeights)] == ["a"]
    (resident,) = [b for b in table.snapshot().memory.devices[0].blocks if b.model == "a"]
    assert resident.size_bytes >= 24 * MIB


def test_a_conversion_without_room_for_its_scratch_is_not_started():
    table, wanted = full("convert", "evict", scratch_mib=30)
    table.at(1).submit(wanted)
    assert table.take(ConvertWeights) == []
    assert [e.model for e in table.take(EvictWeights)] == ["a"]


def test_full_precision_comes_back_when_memory_returns():
    table, wanted = full("convert", "evict", restore_share=0.1)
    table.at(1).submit(wanted)
    (down,) = table.take(ConvertWeights)
    table.tell(ConvertFinished(down.convert_id, 1, down.new_size_bytes))
    table.finish_loads()
    for batch in table.batches():
        table.finish(batch)
    assert table.take(ConvertWeights) == []
    table.tell(OperatorCommand(Command.EVICT, "ada", "wanted"))
    (gone,) = table.take(EvictWeights)
    table.tell(EvictFinished(gone.eviction_id, 0, gone.size_bytes))
    (up,) = table.take(ConvertWeights)
    assert (up.precision, up.new_size_bytes) == ("fp32", 24 * MIB)
    assert up.new_offset != up.offset, "both blocks are held until the new one is written"
    table.tell(ConvertFinished(up.convert_id, 1, up.new_size_bytes))
    state = table.snapshot().memory.devices[0]
    assert [(r.precision, r.size_bytes) for r in state.residents] == [("fp32", 24 * MIB)]
    assert state.free_bytes == state.pool_bytes - 24 * MIB


def test_a_batch_at_a_lower_precision_runs_under_that_precisions_profile():
    table, _ = full("convert", restore_share=1.0)
    table.tell(OperatorCommand(Command.CONVERT, "ada", "a", "", precision="bf16"))
    (down,) = table.take(ConvertWeights)
    table.tell(ConvertFinished(down.convert_id, 1, down.new_size_bytes))
    table.at(5).submit(LaneKey("a", (1,), "float32"))
    (batch,) = table.batches()
    assert batch.lease_bytes == 2 * MIB, "one item and the scratch of one layer"


def test_every_way_that_was_tried_is_said_once_per_wait():
    table = table_with("convert", "compact", "evict")
    a, b = (table.model(name, weight_mib=30) for name in ("a", "b"))
    table.submit(a)
    table.finish_loads()
    table.log.clear()
    table.at(1).submit(b)
    table.at(2).submit(b)
    tried = [("convert", "not enough"), ("compact", "not enough"), ("evict", "not enough")]
    assert rungs(table)[:4] == [*tried, ("wait", "waits")]
    assert len([r for r in rungs(table) if r[0] == "wait"]) == 1


@pytest.mark.parametrize(("share", "evicts"), [(0.5, False), (1.0, True)])
def test_a_smaller_batch_is_taken_before_evicting_if_it_is_large_enough(
    share: float, evicts: bool
):
    policy = Policy().replace(default={"high": 8}, memory={**QUICK, "smallest_batch": share})
    table = Table(policy, pool_mib=26)
    a, b = table.model("a", weight_mib=10), table.model("b", weight_mib=10)
    serve(table, a, 0)
    table.at(1).submit(b)
    table.finish_loads()
    for _ in range(7):
        table.at(1).submit(b)
    for batch in table.batches():
        table.at(2).finish(batch)
    assert bool(table.take(EvictWeights)) is evicts


def test_a_warm_lease_keeps_its_bytes_from_idle_weights_and_yields_to_a_load():
    policy = Policy().replace(default={"high": 8}, memory={**QUICK, "preallocate": True})
    table = Table(policy, pool_mib=40)
    a, b = table.model("a", weight_mib=10), table.model("b", weight_mib=25)
    serve(table, a, 0)
    state = table.snapshot().memory.devices[0]
    assert (state.warm_bytes, state.lease_bytes) == (8 * MIB, 8 * MIB)
    table.at(1).submit(a)
    (batch,) = table.batches()
    assert (batch.items, batch.lease_bytes) == (1, 8 * MIB)
    table.finish(batch)
    table.at(2).submit(b)
    (load,) = table.take(LoadWeights)
    assert table.snapshot().memory.devices[0].warm_bytes == 0
    table.tell(LoadFinished(load.load_id, 1, load.size_bytes))
    table.apply(policy.replace(memory={"preallocate": False}))
    for batch in table.batches():
        table.finish(batch)
    assert table.snapshot().memory.devices[0].lease_bytes == 0
