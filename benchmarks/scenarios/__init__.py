"""Scenarios: fixed workloads, so that figures of different days can be compared."""
