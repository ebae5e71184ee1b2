"""scheduler: see the modules."""
