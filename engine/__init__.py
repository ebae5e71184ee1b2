"""engine: see the modules."""
