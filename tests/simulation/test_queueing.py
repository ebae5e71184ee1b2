"""Queueing theory: the simulated mean wait of one server agrees with M/D/1."""

from __future__ import annotations

import pytest

from benchmarks.queueing import SERVICE_MS, compare, one_server
from engine.drivers.simulated import simulate
from engine.units import NS_PER_MS

# Requests per seed; five seeds, chosen before the first run. The width of the interval falls
# with the square root of their number, and the higher load needs more for the same width.
REQUESTS = {0.5: 40_000, 0.8: 150_000}


@pytest.mark.parametrize("load", REQUESTS)
def test_the_interval_of_the_mean_wait_contains_the_theory_and_is_narrow(load: float):
    found = compare(load, REQUESTS[load])
    assert found.is_inside, found
    assert found.width < 0.04, found


def test_each_request_of_one_server_ends_exactly_when_the_recursion_says():
    outcome = simulate(one_server(0.8, 5000).seeded(9))
    ended_ns = list(outcome.ended_ns)
    free_ns = ended_ns[0]  # the first one waited for the load of its model
    for index, arrival_ns in enumerate(outcome.arrivals_ns.tolist()[1:], 1):
        free_ns = max(free_ns, arrival_ns) + SERVICE_MS * NS_PER_MS
        if free_ns <= outcome.scenario.duration_ns:
            assert ended_ns[index] == free_ns
