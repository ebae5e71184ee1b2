"""The scheduler: events in, effects out; no clock, thread, chance, file or socket."""
