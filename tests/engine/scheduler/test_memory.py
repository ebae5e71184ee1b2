"""Tests of room-making: loads, evictions, leases and what they may take from whom."""

from __future__ import annotations

from engine.effects import EvictWeights, LoadWeights
from engine.events import (
    Command,
    DeviceLost,
    EvictFinished,
    FailureKind,
    LoadFailed,
    LoadFinished,
    OperatorCommand,
)
from engine.policy import Policy
from tests.engine.scheduler.table import Table


def serve(table: Table, lane: object, ms: float) -> None:
    """Let one request of a lane run to its end."""
    table.at(ms).submit(lane)
    table.finish_loads()
    for batch in table.batches():
        table.finish(batch)


def balanced(table: Table) -> bool:
    """Return whether held + free = pool on every device."""
    return all(
        d.resident_bytes + d.lease_bytes + d.free_bytes == d.pool_bytes
        for d in table.snapshot().memory.devices
    )


def test_ten_cold_requests_cause_one_load():
    table = Table()
    lane = table.model("a")
    for _ in range(10):
        table.submit(lane)
    loads = table.finish_loads()
    assert [load.model for load in loads] == ["a"]
    assert table.batches()[0].items == 10


def test_the_least_recently_used_idle_model_is_evicted():
    table = Table(pool_mib=40)
    lanes = [table.model(name, weight_mib=15) for name in ("a", "b", "c")]
    for ms, lane in enumerate(lanes[:2]):
        serve(table, lane, ms)
    serve(table, lanes[0], 5)
    table.at(60).submit(lanes[2])
    assert [e.model for e in table.take(EvictWeights)] == ["b"]


def test_bytes_on_their_way_out_stay_held_until_the_device_says_so():
    table = Table(pool_mib=40)
    lanes = [table.model(name, weight_mib=15) for name in ("a", "b", "c")]
    for ms, lane in enumerate(lanes[:2]):
        serve(table, lane, ms)
    table.at(60).submit(lanes[2])
    (eviction,) = table.take(EvictWeights)
    assert table.take(LoadWeights) == []
    assert table.snapshot().memory.devices[0].free_bytes < 15 * 2**20
    table.at(61).tell(EvictFinished(eviction.eviction_id, 0, eviction.size_bytes))
    assert [load.model for load in table.take(LoadWeights)] == ["c"]


def test_a_model_in_use_is_never_evicted():
    table = Table(pool_mib=28)
    a, b = (table.model(name, weight_mib=15, item_mib=1) for name in ("a", "b"))
    table.submit(a)
    table.finish_loads()
    (batch,) = table.batches()
    table.at(1).submit(b)
    assert table.take(EvictWeights) == []
    table.at(60).finish(batch)
    assert [e.model for e in table.take(EvictWeights)] == ["a"]


def test_a_pinned_model_is_never_evicted():
    table = Table(Policy().replace(models={"a": {"pinned": True}}), pool_mib=28)
    a, b = (table.model(name, weight_mib=15) for name in ("a", "b"))
    serve(table, a, 0)
    table.at(1).submit(b)
    assert table.take(EvictWeights) == []


def test_two_models_that_do_not_fit_together_are_both_served():
    table = Table(Policy().replace(default={"low": 1, "high": 1}), pool_mib=20)
    a, b = (table.model(name, weight_mib=12) for name in ("a", "b"))
    ids = [table.at(0).submit(lane) for lane in (a, b, a, b, a, b)]
    done: list[int] = []
    for ms in range(1, 200):
        table.at(ms)
        table.finish_loads()
        for batch in table.batches():
            table.finish(batch)
        done += table.resolved()
    assert sorted(done) == ids


def test_a_failed_load_fails_its_waiting_requests_and_frees_the_block():
    table = Table()
    lane = table.model("a")
    ids = [table.submit(lane) for _ in range(2)]
    (load,) = table.take(LoadWeights)
    table.at(1).tell(LoadFailed(load.load_id, 1, FailureKind.ERROR, "OSError: gone"))
    assert [row[:2] for row in table.rejected()] == [(i, "failed") for i in ids]
    state = table.snapshot().memory.devices[0]
    assert state.free_bytes == state.pool_bytes


def test_a_lost_device_gives_its_work_back():
    table = Table(devices=2)
    lane = table.model("a")
    request = table.submit(lane)
    table.finish_loads()
    (batch,) = table.batches()
    table.at(1).tell(DeviceLost(batch.device, "xid 79"))
    table.finish_loads()
    (again,) = table.batches()
    assert again.device != batch.device
    table.at(2).finish(again)
    assert table.resolved() == [request]


def test_a_budgeted_lease_and_weights_share_the_pool():
    table = Table(pool_mib=30)
    a = table.model("a", weight_mib=10, item_mib=2)
    table.submit(a, items=4)
    table.finish_loads()
    assert balanced(table)
    (batch,) = table.batches()
    assert batch.lease_bytes == 8 * 2**20
    table.finish(batch)
    assert balanced(table)


def test_the_batch_shrinks_when_memory_is_short():
    table = Table(Policy().replace(default={"low": 1, "high": 16}), pool_mib=20)
    lane = table.model("a", weight_mib=10, item_mib=2)
    table.submit(lane, items=16)
    table.finish_loads()
    assert table.batches()[0].items == 5


def test_an_operator_can_load_and_evict_by_hand():
    table = Table()
    table.model("a")
    table.tell(OperatorCommand(Command.LOAD, "ada", "a", "sim:0"))
    (load,) = table.take(LoadWeights)
    table.tell(LoadFinished(load.load_id, 1, load.size_bytes))
    assert table.snapshot().model("a").resident_on == ("sim:0",)
    table.tell(OperatorCommand(Command.EVICT, "ada", "a"))
    table.finish_loads()
    assert table.snapshot().model("a").resident_on == ()


def test_a_lowered_fence_evicts_what_does_not_fit_any_more():
    table = Table(pool_mib=60)
    lanes = [table.model(name, weight_mib=15) for name in ("a", "b", "c")]
    for ms, lane in enumerate(lanes):
        serve(table, lane, ms)
    table.at(9).apply(table.policy.replace(devices={"sim:0": {"pool_mib": 32}}))
    table.finish_loads()
    state = table.snapshot().memory.devices[0]
    assert state.pool_bytes <= 32 * 2**20
    assert state.resident_bytes <= state.pool_bytes


def test_pausing_holds_batches_and_resuming_lets_them_go():
    table = Table()
    lane = table.model("a")
    table.tell(OperatorCommand(Command.PAUSE, "ada"))
    table.submit(lane)
    table.finish_loads()
    assert table.batches() == []
    table.tell(OperatorCommand(Command.RESUME, "ada"))
    table.finish_loads()
    assert len(table.batches()) == 1
