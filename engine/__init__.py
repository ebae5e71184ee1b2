"""The engine: a scheduler without I/O, the devices it drives, the facade that users hold."""
