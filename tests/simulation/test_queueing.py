"""Queueing theory: the simulated mean wait of one server agrees with M/D/1."""

from __future__ import annotations

import pytest

from benchmarks.queueing import compare

# Requests per seed; five seeds, chosen before the first run. The width of the interval falls
# with the square root of their number, and the higher load needs more for the same width.
REQUESTS = {0.5: 40_000, 0.8: 150_000}


@pytest.mark.parametrize("load", REQUESTS)
def test_the_interval_of_the_mean_wait_contains_the_theory_and_is_narrow(load: float):
    found = compare(load, REQUESTS[load])
    assert found.is_inside, found
    assert found.width < 0.04, found
