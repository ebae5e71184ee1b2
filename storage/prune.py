"""Prune: old rows go a chunk at a time, so that the writer is never held up."""

from __future__ import annotations

from typing import cast

from sqlalchemy import Connection, Table, delete, select

from storage.schema import DECISIONS, DEVICE_SAMPLES, KEYFRAMES, MODEL_SAMPLES
from storage.writer import Writer

CHUNK = 10_000


def prune(writer: Writer, *, before_ms: int) -> int:
    """Delete samples and decisions from before an instant; return how many rows."""
    deleted = 0
    for table in (DEVICE_SAMPLES, MODEL_SAMPLES, DECISIONS, KEYFRAMES):
        while True:
            gone = _chunk(writer, table, before_ms=before_ms)
            deleted += gone
            if gone < CHUNK:
                break
    return deleted


def _chunk(writer: Writer, table: Table, *, before_ms: int) -> int:
    def change(connection: Connection) -> int:
        oldest = (
            select(table.c.at_ms)
            .where(table.c.at_ms < before_ms)
            .order_by(table.c.at_ms)
            .limit(1)
            .offset(CHUNK)
        )
        limit = connection.execute(oldest).scalar()
        until = before_ms if limit is None else min(before_ms, int(limit) + 1)
        return connection.execute(delete(table).where(table.c.at_ms < until)).rowcount

    return cast(int, writer.do(change))
