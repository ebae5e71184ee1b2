"""drivers: see the modules."""
