"""Tests of precisions that are ordered by hand, and of those that a policy forbids."""

from __future__ import annotations

import numpy as np
import pytest

from engine.drivers.operator import whole_bytes
from engine.effects import ConvertWeights, EvictWeights
from engine.errors import InputError
from engine.events import Command, ConvertFinished, OperatorCommand
from engine.policy import Policy
from engine.spec import LaneKey
from tests.engine.scheduler.table import Table
from tests.engine.scheduler.test_ladder import QUICK, full


def by_hand(pool_mib: int) -> Table:
    """Return a table whose resident an operator has given int8."""
    table, _ = full("convert", "evict", restore_share=0.1, pool_mib=pool_mib)
    table.tell(OperatorCommand(Command.CONVERT, "ada", "a", "", precision="int8"))
    (down,) = table.take(ConvertWeights)
    table.tell(ConvertFinished(down.convert_id, 1, down.new_size_bytes))
    return table


def test_a_precision_that_was_ordered_by_hand_stays_although_there_is_room():
    table = by_hand(80)
    table.at(50).submit(LaneKey("a", (1,), "float32"))
    for batch in table.batches():
        table.finish(batch)
    assert table.take(ConvertWeights) == []
    assert table.snapshot().memory.devices[0].residents[0].precision == "int8"


def test_a_precision_that_the_policy_forbids_ends_by_conversion_or_without_room_by_eviction():
    fp32 = Policy().replace(memory={**QUICK, "restore_share": 1.0})
    roomy, tight = by_hand(80), by_hand(29)
    for table in (roomy, tight):
        table.apply(fp32)
    assert [c.precision for c in roomy.take(ConvertWeights)] == ["fp32"]
    assert roomy.take(EvictWeights) == []
    assert tight.take(ConvertWeights) == []
    assert [e.model for e in tight.take(EvictWeights)] == ["a"]


def test_an_order_takes_any_whole_number_of_bytes_and_keeps_a_plain_one():
    assert type(whole_bytes(np.int64(5), "compact")) is int
    for odd in (1.5, float("nan"), -1, "many"):
        with pytest.raises(InputError, match="compact: found"):
            whole_bytes(odd, "compact")
