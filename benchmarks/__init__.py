"""Benchmarks: one runnable module per claim; each prints one JSON object."""
