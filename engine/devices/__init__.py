"""Devices: what runs batches and holds weights; all that the engine knows of torch."""
