"""Storage: samples, decisions, policy versions and runs, kept in SQLite."""

from storage.store import Store

__all__ = ["Store"]
