"""Tests of batching: this event, this instant, these effects."""

from __future__ import annotations

from engine.events import BatchFinished, CancelRequested, FailureKind, TimePassed
from engine.policy import Policy
from tests.engine.scheduler.table import Table


def ready_table(**marks: float | str) -> tuple[Table, object]:
    """Return a table whose model is resident and idle."""
    table = Table(Policy().replace(default=marks))
    lane = table.model("a")
    table.submit(lane, items=int(str(marks["high"])))
    table.finish_loads()
    while batches := table.batches():
        table.finish(batches[0])
    table.log.clear()
    return table, lane


def test_a_lone_request_leaves_at_once_when_the_low_watermark_is_one():
    table, lane = ready_table(low=1, high=4, timeout_ms=50)
    table.at(1).submit(lane)
    assert [batch.items for batch in table.batches()] == [1]


def test_a_batch_below_the_low_watermark_leaves_when_its_oldest_request_times_out():
    table, lane = ready_table(low=4, high=8, timeout_ms=50)
    table.at(10).submit(lane)
    table.at(30).submit(lane)
    assert table.batches() == []
    table.at(60).tell(TimePassed())
    assert [batch.items for batch in table.batches()] == [2]
    assert table.reasons("batch") == ["timeout"]


def test_reaching_the_low_watermark_lets_a_batch_leave_before_the_timeout():
    table, lane = ready_table(low=3, high=8, timeout_ms=50)
    for ms in (10, 11, 12):
        table.at(ms).submit(lane)
    assert [batch.items for batch in table.batches()] == [3]
    assert table.reasons("batch") == ["low_watermark"]


def test_requests_join_a_prepared_batch_until_the_device_is_free():
    table, lane = ready_table(low=1, high=4, timeout_ms=50)
    table.at(1).submit(lane)
    (first,) = table.batches()
    table.at(2).submit(lane)
    table.at(3).submit(lane)
    assert table.batches() == []
    table.at(4).finish(first)
    assert [batch.items for batch in table.batches()] == [2]


def test_a_full_queue_leaves_in_batches_of_exactly_high_items_and_a_split_request_is_rejoined():
    table, lane = ready_table(low=1, high=4, timeout_ms=50)
    table.at(1).submit(lane)
    (first,) = table.batches()
    ids = [table.at(2).submit(lane, items=3) for _ in range(3)]
    table.at(3).finish(first)
    table.resolved()
    sizes = []
    while batches := table.batches():
        sizes.append(batches[0].items)
        table.at(4).finish(batches[0])
    assert sizes == [4, 4, 1]
    assert table.resolved() == ids


def test_a_patient_batch_waits_on_a_free_device_until_it_is_full():
    table, lane = ready_table(low=1, high=3, timeout_ms=50, fill="patient")
    table.at(1).submit(lane)
    table.at(2).submit(lane)
    assert table.batches() == []
    table.at(3).submit(lane)
    assert [batch.items for batch in table.batches()] == [3]
    assert table.reasons("batch") == ["full"]


def test_a_patient_batch_leaves_when_it_is_due():
    table, lane = ready_table(low=1, high=3, timeout_ms=50, fill="patient")
    table.at(60).submit(lane)
    assert table.batches() == []
    table.at(110).tell(TimePassed())
    assert [batch.items for batch in table.batches()] == [1]


def test_a_patient_batch_leaves_at_the_last_moment_that_meets_a_deadline():
    table, lane = ready_table(low=1, high=3, timeout_ms=500, fill="patient")
    table.at(10).submit(lane, deadline_ms=40)
    assert table.batches() == []
    table.at(37).tell(TimePassed())
    assert [batch.items for batch in table.batches()] == [1]
    assert table.reasons("batch") == ["deadline"]


def test_an_urgent_request_goes_before_an_earlier_one_of_its_lane():
    table, lane = ready_table(low=1, high=1, timeout_ms=50)
    table.at(1).submit(lane)
    (first,) = table.batches()
    late = table.at(2).submit(lane, priority_class=5)
    urgent = table.at(3).submit(lane, priority_class=0)
    table.at(4).finish(first)
    (second,) = table.batches()
    assert second.parts[0][0] == urgent
    table.at(5).finish(second)
    assert table.batches()[0].parts[0][0] == late


def test_aging_lifts_a_waiting_request_above_a_fresh_urgent_one():
    policy = Policy().replace(default={"low": 1, "high": 1}, admission={"aging_ms": 10.0})
    table = Table(policy)
    lane = table.model("a")
    table.submit(lane, priority_class=0)
    table.finish_loads()
    (first,) = table.batches()
    old = table.at(1).submit(lane, priority_class=5)
    table.at(60).submit(lane, priority_class=1)
    table.at(61).finish(first)
    assert table.batches()[0].parts[0][0] == old


def test_a_cancelled_request_never_reaches_the_device():
    table, lane = ready_table(low=1, high=4, timeout_ms=50)
    table.at(1).submit(lane)
    (first,) = table.batches()
    gone = table.at(2).submit(lane)
    kept = table.at(3).submit(lane)
    table.at(4).tell(CancelRequested(gone))
    assert table.rejected() == [(gone, "cancelled", "command")]
    table.at(5).finish(first)
    assert [part[0] for part in table.batches()[0].parts] == [kept]


def test_a_request_expires_in_the_queue_at_its_deadline():
    table, lane = ready_table(low=1, high=1, timeout_ms=50)
    table.at(1).submit(lane)
    table.batches()
    late = table.at(2).submit(lane, deadline_ms=20)
    table.at(20).tell(TimePassed())
    assert table.rejected() == [(late, "expired", "deadline")]


def test_one_bad_item_fails_alone_after_halving():
    table, lane = ready_table(low=1, high=4, timeout_ms=50)
    table.at(1).submit(lane)
    (first,) = table.batches()
    ids = [table.at(2).submit(lane) for _ in range(4)]
    culprit = ids[2]
    table.at(3).finish(first)
    table.resolved()
    while batches := table.batches():
        batch = batches[0]
        if culprit in [part[0] for part in batch.parts]:
            table.at(4).fail(batch)
        else:
            table.at(4).finish(batch)
    assert sorted(table.resolved()) == [i for i in ids if i != culprit]
    assert table.rejected() == [(culprit, "failed", "error")]


def test_without_retry_budget_the_whole_batch_fails():
    policy = Policy().replace(default={"low": 2, "high": 2}, admission={"retry_batches": 0})
    table = Table(policy)
    lane = table.model("a")
    ids = [table.submit(lane) for _ in range(2)]
    table.finish_loads()
    table.fail(table.batches()[0])
    assert [row[0] for row in table.rejected()] == ids


def test_out_of_memory_lowers_the_largest_batch():
    table, lane = ready_table(low=1, high=4, timeout_ms=50)
    table.at(1).submit(lane)
    (first,) = table.batches()
    for _ in range(4):
        table.at(2).submit(lane)
    table.at(3).finish(first)
    table.at(4).fail(table.batches()[0], FailureKind.OUT_OF_MEMORY)
    sizes = []
    for _ in range(4):
        table.at(5).submit(lane)
    while batches := table.batches():
        sizes.append(batches[0].items)
        table.at(6).finish(batches[0])
    assert max(sizes) == 2


def test_a_full_queue_refuses_at_once_and_says_which_limit():
    policy = Policy().replace(default={"low": 1, "high": 1}, admission={"queue_items": 2})
    table = Table(policy)
    lane = table.model("a")
    ids = [table.submit(lane) for _ in range(3)]
    assert table.rejected() == [(ids[2], "refused", "queue_items")]


def test_a_batch_that_cannot_fit_is_refused_with_the_sizes():
    table = Table(pool_mib=16)
    lane = table.model("large", weight_mib=12, item_mib=8)
    refused = table.submit(lane)
    assert table.rejected() == [(refused, "refused", "cannot_fit")]


def test_an_unknown_model_is_refused():
    table = Table()
    lane = table.model("a")._replace(model="b")
    refused = table.submit(lane)
    assert table.rejected() == [(refused, "refused", "unknown_model")]


def test_the_expected_time_of_a_batch_is_capped():
    table, lane = ready_table(low=1, high=16, timeout_ms=50, max_batch_ms=3)
    table.at(1).submit(lane)
    (first,) = table.batches()
    for _ in range(8):
        table.at(2).submit(lane)
    table.at(3).finish(first)
    assert table.batches()[0].items == 3


def test_a_batch_ends_only_once():
    table, lane = ready_table(low=1, high=1, timeout_ms=50)
    table.at(1).submit(lane)
    (batch,) = table.batches()
    table.at(2).finish(batch)
    resolved = table.resolved()
    table.at(3).tell(BatchFinished(batch.batch_id, 1))
    assert len(resolved) == 1
    assert table.resolved() == []
