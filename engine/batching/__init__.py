"""batching: see the modules."""
