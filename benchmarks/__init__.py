"""benchmarks: see the modules."""
