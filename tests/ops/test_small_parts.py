"""Small parts: what runs were made with, the daily job, a load's figures, tables for people."""

from __future__ import annotations

import re

import pytest

from engine.errors import StoreError
from engine.load.plan import LoadPlan
from engine.load.tally import Tally
from engine.units import NS_PER_MS, NS_PER_S
from ops.commands.output import instant, table
from ops.jobs import Jobs
from ops.load_status import Session, load_status
from ops.machine import code_version, hardware
from tests.ops.states import device


def test_hardware_and_code_are_one_line_each() -> None:
    text = hardware([device("cpu:0"), device("cpu:1")])
    assert re.search(r"\d+ cores, .*; cpu:0 \(100 MiB\), cpu:1 \(100 MiB\)$", text)
    assert re.fullmatch(r"\d+(\.\d+)*(\+[0-9a-f]{10})?", code_version())


def test_the_daily_job_prunes_and_survives_a_store_in_trouble() -> None:
    calls: list[int] = []

    def prune() -> int:
        calls.append(1)
        raise StoreError("the disk is full")

    jobs = Jobs(prune)
    jobs.start()
    jobs.prune()
    jobs.close()
    jobs.close()
    assert calls == [1]


def test_a_loads_figures_count_rates_from_the_start_of_sending() -> None:
    tally = Tally()
    for number in range(10):
        tally.sent(number, number)
        took_ns = (5 if number < 8 else 500) * NS_PER_MS
        tally.ended("completed", number, now_ns=number + took_ns)
    tally.scored({"accuracy": 0.5})
    plan = LoadPlan("digit_reader", seconds=2.0)
    status = load_status(
        Session(1, plan, 0),
        tally.figures(),
        is_running=False,
        elapsed_ns=4 * NS_PER_S,
        slo_ms=100,
    )
    assert (status.offered_hz, status.completed_hz) == (5.0, 2.5)
    assert status.goodput_hz == pytest.approx(2.0)
    assert status.latency_ms["max"] == pytest.approx(500)
    summary = status.summary()
    assert summary["accuracy"] == 0.5
    assert summary["is_valid"] == 1.0
    assert summary["latency_ms_p50"] == pytest.approx(5, rel=0.07)


def test_a_load_that_has_sent_nothing_has_rates_of_nothing() -> None:
    status = load_status(
        Session(1, LoadPlan("a"), 0), Tally().figures(), is_running=True, elapsed_ns=0, slo_ms=1
    )
    assert (status.offered_hz, status.goodput_hz, status.offered) == (0.0, 0.0, 0)


def test_tables_are_aligned_and_instants_are_in_utc(capsys: pytest.CaptureFixture[str]) -> None:
    table(("id", "name"), [(1, "a"), (12, "long")])
    assert capsys.readouterr().out == "id  name\n1   a\n12  long\n"
    assert instant(0) == "1970-01-01 00:00:00Z"
    assert instant(None) == ""
