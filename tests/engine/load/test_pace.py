"""Pace: intended arrivals and closed-loop clients, edited on the fly, without any clock."""

from __future__ import annotations

from dataclasses import replace

from engine.load.pace import FAR_NS, edited, make_pace
from engine.load.plan import LoadPlan

MS = 1_000_000


def test_an_open_loop_does_not_wait_for_results():
    pace = make_pace(LoadPlan("m", rate_hz=100), 0)
    found = []
    for _ in range(3):
        found.append(pace.next_ns)
        pace.advance()
    assert found == [10 * MS, 20 * MS, 30 * MS]


def test_an_edited_rate_rescales_what_is_left_of_the_gap():
    plan = LoadPlan("m", rate_hz=100)
    pace = edited(make_pace(plan, 0), replace(plan, rate_hz=200), now_ns=4 * MS)
    assert pace.next_ns == 7 * MS
    pace.advance()
    assert pace.next_ns == 12 * MS


def test_an_edit_does_not_forgive_arrivals_that_are_overdue():
    plan = LoadPlan("m", rate_hz=100)
    pace = edited(make_pace(plan, 0), replace(plan, rate_hz=1000), now_ns=15 * MS)
    assert pace.next_ns == 10 * MS


def test_a_client_of_a_closed_loop_asks_again_when_it_has_its_result():
    pace = make_pace(LoadPlan("m", "closed", clients=2), 5)
    assert pace.next_ns == 5
    pace.advance()
    pace.advance()
    assert pace.next_ns == FAR_NS
    pace.freed(70)
    assert pace.next_ns == 70


def test_clients_come_and_go_with_an_edit():
    plan = LoadPlan("m", "closed", clients=2)
    pace = make_pace(plan, 0)
    pace.advance()
    pace.advance()
    pace.edit(replace(plan, clients=3), 10)
    assert pace.next_ns == 10
    pace.advance()
    pace.edit(replace(plan, clients=1), 20)
    pace.freed(30)
    pace.freed(31)
    assert pace.next_ns == FAR_NS
    pace.freed(32)
    assert pace.next_ns == 32


def test_a_loop_can_be_opened_and_closed():
    plan = LoadPlan("m", rate_hz=100)
    pace = edited(make_pace(plan, 0), replace(plan, kind="closed", clients=1), now_ns=3)
    assert pace.is_closed and pace.next_ns == 3
    assert not edited(pace, plan, now_ns=4).is_closed
