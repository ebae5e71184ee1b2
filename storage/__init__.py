"""Storage: what is kept of a run; one thread writes, any number read; the only SQL."""
