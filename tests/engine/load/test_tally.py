"""Tally: requests are counted once, latency counts from the intended arrival."""

from __future__ import annotations

import pytest

from engine.load.tally import OUTCOMES, SLIP_LIMIT_NS, Outcome, Tally

MS = 1_000_000


def test_latency_counts_from_the_intended_arrival_however_late_the_sending_was():
    tally = Tally()
    tally.sent(100 * MS, 130 * MS)
    tally.ended("completed", 100 * MS, now_ns=150 * MS)
    found = tally.figures()
    assert (found.latency.max_ns, found.slip.max_ns) == (50 * MS, 30 * MS)


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_every_sent_request_is_under_way_or_ended_once(outcome: Outcome):
    tally = Tally()
    for at_ns in range(3):
        tally.sent(at_ns, at_ns)
    tally.ended(outcome, 0, now_ns=5)
    found = tally.figures()
    assert getattr(found, outcome) == 1
    assert found.sent == 3 == found.in_flight + sum(getattr(found, name) for name in OUTCOMES)


def test_a_generator_that_drops_or_is_late_makes_the_load_invalid():
    on_time, late, dropping = Tally(), Tally(), Tally()
    on_time.sent(0, MS)
    late.sent(0, 2 * SLIP_LIMIT_NS)
    dropping.dropped()
    assert on_time.figures().is_valid
    assert not late.figures().is_valid
    assert not dropping.figures().is_valid
    assert dropping.figures().offered == 1


def test_scores_are_averaged_by_name():
    tally = Tally()
    tally.scored({"cer": 0.0, "found": 1.0})
    tally.scored({"cer": 0.5})
    assert tally.figures().scores == {"cer": 0.25, "found": 1.0}


def test_figures_do_not_change_any_more():
    tally = Tally()
    before = tally.figures()
    tally.sent(0, 0)
    assert (before.sent, before.slip.count) == (0, 0)
