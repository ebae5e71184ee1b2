"""Sampling: the rows of one second from two snapshots, and which decisions are stored."""

from __future__ import annotations

import pytest

from engine.decisions import STORED_ALWAYS, Decision, Kind, Reason
from engine.metrics import LatencyHistogram
from engine.units import MIB, NS_PER_MS, NS_PER_S
from ops.sampling import SAMPLED_PER_SECOND, chosen, marks, sample
from tests.ops.states import device, model, snapshot


def test_counts_and_latency_are_those_of_the_second_alone() -> None:
    before = snapshot(1, models=(model("digits", 5, 6),))
    after = snapshot(2, models=(model("digits", 5, 6, 7 * NS_PER_MS),))
    (row,) = sample(before, after, at_ms=2000).models
    assert (row.at_ms, row.model, row.submitted, row.completed) == (2000, "digits", 1, 1)
    latency = LatencyHistogram.from_bytes(row.latency)
    assert latency.count == 1
    assert latency.sum_ns == 7 * NS_PER_MS


def test_a_second_in_which_nothing_happened_has_empty_histograms() -> None:
    rest = model("digits", 5, 6)
    (row,) = sample(snapshot(1, models=(rest,)), snapshot(2, models=(rest,)), at_ms=2).models
    assert row.completed == 0
    assert LatencyHistogram.from_bytes(row.latency) == LatencyHistogram()


def test_a_model_that_was_not_there_before_starts_from_nothing() -> None:
    (row,) = sample(snapshot(1), snapshot(2, models=(model("new", 9),)), at_ms=2).models
    assert row.completed == 1


def test_levels_are_those_at_the_end_of_the_second() -> None:
    before = snapshot(1, models=(model(queued_items=9),))
    after = snapshot(2, models=(model(queued_items=3, resident_on=("cpu:0", "cpu:1")),))
    (row,) = sample(before, after, at_ms=2).models
    assert (row.queued_items, row.residents) == (3, 2)


def test_busy_is_the_share_of_the_time_in_which_a_batch_ran() -> None:
    before = snapshot(1, devices=(device(busy_ns=NS_PER_S),))
    after = snapshot(3, devices=(device(busy_ns=NS_PER_S + NS_PER_S // 2),))
    (row,) = sample(before, after, at_ms=3).devices
    assert row.busy == pytest.approx(0.25)


def test_unusable_is_about_the_largest_model_that_is_not_resident() -> None:
    cut = device(holes=(10 * MIB, 50 * MIB))
    here = model("here", weight_bytes=90 * MIB, resident_on=("cpu:0",))
    away = model("away", weight_bytes=40 * MIB)
    (row,) = sample(snapshot(1), snapshot(2, (cut,), (here, away)), at_ms=2).devices
    assert row.unusable == pytest.approx(20 / 60)
    (row,) = sample(snapshot(1), snapshot(2, (cut,), (here,)), at_ms=2).devices
    assert row.unusable == 0.0


def test_memory_is_taken_over_as_it_is() -> None:
    now = device(lease_bytes=10 * MIB, needed_lease_bytes=6 * MIB, truth_bytes=7)
    (row,) = sample(snapshot(1), snapshot(2, (now,)), at_ms=2).devices
    assert row.internal_fragmentation == pytest.approx(0.4)
    assert (row.lease_bytes, row.free_bytes, row.truth_bytes) == (10 * MIB, 60 * MIB, 7)


def decision(serial: int, kind: Kind, reason: Reason = Reason.FULL, **more: object) -> Decision:
    return Decision(serial, serial * NS_PER_MS, kind, reason, **more)  # type: ignore[arg-type]


def test_all_rare_decisions_are_stored_and_a_fixed_number_of_the_frequent_ones() -> None:
    decisions = [decision(n, Kind.BATCH) for n in range(500)]
    decisions += [decision(500 + n, kind) for n, kind in enumerate(sorted(STORED_ALWAYS))]
    stored = chosen(decisions)
    assert [one.serial for one in stored] == sorted(one.serial for one in stored)
    assert sum(one.kind is Kind.BATCH for one in stored) == SAMPLED_PER_SECOND
    assert {one.kind for one in stored} >= STORED_ALWAYS


def test_which_decisions_are_stored_depends_on_their_serial_numbers_alone() -> None:
    decisions = [decision(n, Kind.PLACEMENT) for n in range(300)]
    assert chosen(decisions) == chosen(list(reversed(decisions)))


def test_marks_name_policies_evictions_loads_and_troubles_at_their_wall_time() -> None:
    found = marks(
        [
            decision(1, Kind.POLICY, subject=3, numbers=(("author", "ada"), ("why", "calmer"))),
            decision(2, Kind.EVICT, model="a", device="cpu:0", numbers=(("bytes", MIB),)),
            decision(3, Kind.LOAD, model="b", device="cpu:0", numbers=(("bytes", MIB),)),
            decision(4, Kind.LOAD, Reason.ERROR, model="b", numbers=(("error", "boom"),)),
            decision(5, Kind.REFUSE, Reason.QUEUE_ITEMS, model="b"),
            decision(6, Kind.BATCH),
        ],
        start_wall_ns=1_000 * NS_PER_S,
    )
    assert [mark.kind for mark in found] == ["policy", "evict", "load", "alert", "alert"]
    assert found[0].text == "v3 ada: calmer"
    assert found[1].text == "a cpu:0 1.0 MiB"
    assert found[1].at_ms == 1_000_002
