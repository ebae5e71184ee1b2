"""placement: see the modules."""
