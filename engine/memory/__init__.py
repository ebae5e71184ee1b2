"""Memory: a device's byte range, what lies in it, and what has to leave."""

from engine.memory.pool import Pool

__all__ = ["Pool"]
