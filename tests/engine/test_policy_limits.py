"""Policy limits: no accepted value is too large or too small for the core's integers."""

from __future__ import annotations

import pytest

from engine.errors import PolicyError
from engine.policy import Policy

HUGE = {
    "default": ("quota_mib", "deadline_ms", "max_batch_ms", "slo_ms"),
    "memory": ("host_mib", "compaction_mib_per_s", "demand_window_s"),
    "admission": ("queue_mib",),
}


@pytest.mark.parametrize(
    ("part", "field"), [(part, field) for part, fields in HUGE.items() for field in fields]
)
@pytest.mark.parametrize("value", [1e304, float("inf"), float("nan")])
def test_a_value_beyond_all_machines_is_refused(part: str, field: str, value: float):
    with pytest.raises(PolicyError, match=field):
        Policy().replace(**{part: {field: value}})


@pytest.mark.parametrize(
    ("part", "field"), [("memory", "demand_window_s"), ("default", "quota_mib")]
)
def test_a_value_that_would_round_to_nothing_is_refused(part: str, field: str):
    with pytest.raises(PolicyError, match=field):
        Policy().replace(**{part: {field: 1e-12}})
