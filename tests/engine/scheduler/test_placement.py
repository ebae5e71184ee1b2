"""Tests of where a batch goes when its model is somewhere already."""

from __future__ import annotations

import pytest

from engine.effects import LoadWeights
from engine.policy import Policy
from tests.engine.scheduler.table import Table

SMALL = {"low": 1, "high": 4, "timeout_ms": 0.0}


@pytest.mark.parametrize("policy", ["least_loaded", "memory_aware"])
def test_a_busy_holder_is_waited_for_while_that_is_sooner_than_a_load(policy: str):
    table = Table(Policy().replace(default=SMALL, placement={"policy": policy}), devices=2)
    lane = table.model("hot", weight_mib=10, item_ms=1)
    table.submit(lane)
    assert len(table.finish_loads()) == 1
    table.submit(lane, items=4)
    table.submit(lane, items=4)
    assert not table.take(LoadWeights), "a load takes 10 ms, the queue 9 ms"


@pytest.mark.parametrize("policy", ["least_loaded", "memory_aware"])
def test_an_idle_holder_gets_the_batch_though_another_device_is_emptier(policy: str):
    table = Table(Policy().replace(default=SMALL, placement={"policy": policy}), devices=2)
    lane = table.model("hot", weight_mib=60)
    table.submit(lane)
    table.finish_loads()
    for at_ms in range(10, 50, 10):
        (batch,) = table.batches()
        table.at(at_ms).finish(batch)
        table.submit(lane)
    assert not table.take(LoadWeights)
