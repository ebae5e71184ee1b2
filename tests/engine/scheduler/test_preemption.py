"""Tests of who may take memory from whom: classes, protection, residence, quota, pin."""

from __future__ import annotations

from engine.effects import EvictWeights, LoadWeights, RejectRequests
from engine.policy import Policy
from engine.spec import LaneKey
from tests.engine.scheduler.table import Table

CLASSES = {
    "urgent": {"priority_class": 0},
    "offline": {"priority_class": 5},
}


def memory(**fields: object) -> Policy:
    """Return a policy with one urgent and one offline model and these memory settings."""
    fields = {"min_residence_ms": 0.0, "protect_idle_ms": 100.0, **fields}
    return Policy().replace(models=CLASSES, memory=fields, admission={"aging_ms": 1e6})


def serve(table: Table, lane: LaneKey, ms: float) -> None:
    """Let one request of a lane run to its end."""
    table.at(ms).submit(lane)
    table.finish_loads()
    for batch in table.batches():
        table.finish(batch)


def pair(policy: Policy) -> tuple[Table, LaneKey, LaneKey]:
    """Return a table on which only one of the two models fits."""
    table = Table(policy, pool_mib=28)
    return table, table.model("urgent", weight_mib=15), table.model("offline", weight_mib=15)


def test_a_more_urgent_class_takes_memory_from_an_idle_less_urgent_model_at_once():
    table, urgent, offline = pair(memory())
    serve(table, offline, 0)
    table.at(1).submit(urgent)
    assert [e.model for e in table.take(EvictWeights)] == ["offline"]


def test_a_less_urgent_class_waits_until_the_urgent_model_was_idle_for_long_enough():
    table, urgent, offline = pair(memory())
    serve(table, urgent, 0)
    table.at(1).submit(offline)
    assert table.take(EvictWeights) == []
    table.at(99)
    assert table.take(EvictWeights) == []
    table.at(101)
    assert [e.model for e in table.take(EvictWeights)] == ["urgent"]


def test_aging_lets_a_less_urgent_request_take_memory_before_the_protection_ends():
    policy = memory(protect_idle_ms=60_000.0).replace(admission={"aging_ms": 10.0})
    table, urgent, offline = pair(policy)
    serve(table, urgent, 0)
    table.at(1).submit(offline)
    assert table.take(EvictWeights) == []
    for ms in range(2, 60):
        table.at(ms)
    assert [e.model for e in table.take(EvictWeights)] == ["urgent"]


def test_a_busy_urgent_model_is_never_evicted_however_long_its_batch_runs():
    table, urgent, offline = pair(memory(protect_idle_ms=1.0))
    table.at(0).submit(urgent)
    table.finish_loads()
    table.at(1).submit(offline)
    table.at(5_000)
    assert table.take(EvictWeights) == []
    for batch in table.batches():
        table.finish(batch)
    table.at(5_002)
    assert [e.model for e in table.take(EvictWeights)] == ["urgent"]


def test_a_resident_is_safe_from_its_equals_for_the_minimum_residence_time():
    table = Table(memory(min_residence_ms=50.0), pool_mib=28)
    first, second = (table.model(name, weight_mib=15) for name in ("a", "b"))
    serve(table, first, 0)
    table.at(10).submit(second)
    assert table.take(EvictWeights) == []
    table.at(51)
    assert [e.model for e in table.take(EvictWeights)] == ["a"]


def test_the_minimum_residence_time_does_not_hold_against_a_more_urgent_class():
    table, urgent, offline = pair(memory(min_residence_ms=5_000.0))
    serve(table, offline, 0)
    table.at(1).submit(urgent)
    assert [e.model for e in table.take(EvictWeights)] == ["offline"]


def test_a_prepared_batch_loses_its_bytes_to_the_load_of_a_more_urgent_class():
    table = Table(memory(), pool_mib=34)
    urgent = table.model("urgent", weight_mib=12)
    running, prepared = (table.model(name, weight_mib=12) for name in ("offline", "other"))
    serve(table, running, 0)
    serve(table, prepared, 1)
    table.at(2).submit(running)
    table.at(3).submit(prepared)
    assert table.snapshot().memory.devices[0].prepared is not None
    table.at(4).submit(urgent)
    assert [e.model for e in table.take(EvictWeights)] == ["other"]
    assert "preempted" in table.reasons("retry")


def test_priority_lru_evicts_the_least_urgent_class_first_and_lru_inside_it():
    policy = memory(eviction="priority_lru").replace(
        models={**CLASSES, "b": {"priority_class": 7}, "c": {"priority_class": 7}}
    )
    table = Table(policy, pool_mib=62)
    lanes = {n: table.model(n, weight_mib=15) for n in ("c", "urgent", "offline", "b", "new")}
    for ms, name in enumerate(("offline", "b", "c", "urgent")):
        serve(table, lanes[name], ms)
    table.at(200).submit(lanes["new"])
    assert [e.model for e in table.take(EvictWeights)] == ["b"]


def test_cost_aware_keeps_what_is_asked_for_often_although_it_was_used_longer_ago():
    table = Table(memory(eviction="cost_aware"), pool_mib=40)
    often, once, new = (table.model(n, weight_mib=15) for n in ("often", "once", "new"))
    for ms in range(10):
        serve(table, often, ms)
    serve(table, once, 20)
    table.at(30).submit(new)
    assert [e.model for e in table.take(EvictWeights)] == ["once"]


def test_a_quota_bounds_the_batch_and_refuses_what_can_never_fit_it():
    policy = memory().replace(models={"a": {"quota_mib": 14.0, "low": 1, "high": 16}})
    table = Table(policy, pool_mib=60)
    a = table.model("a", weight_mib=10)
    for _ in range(8):
        table.submit(a)
    table.finish_loads()
    batch = table.batches()[0]
    assert batch.items == 4
    assert table.snapshot().model("a").safe_items == (("sim:0", 4),)
    table.finish(batch)
    table.apply(policy.replace(models={"a": {"quota_mib": 10.0}}))
    table.take(LoadWeights)
    refused = table.submit(a)
    effects = table.take(RejectRequests)
    assert [(e.request_ids, e.reason.value, e.limit) for e in effects] == [
        ((refused,), "cannot_fit", "model's quota")
    ]
    assert effects[0].message == (
        "a: the model's quota has 10485760 B, the model with a batch of one needs 11534336 B; "
        "raise quota_mib"
    )
