"""Queries: what is read from the tables, as statements."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Engine, Select, Table, case, func, select, update

from engine.decisions import Kind
from storage.database import translated
from storage.schema import DECISIONS, DEVICE_SAMPLES, RUNS

Query = Select[tuple[object, ...]]


def window(table: Table, start_ms: int, *, end_ms: int) -> Query:
    """Return all rows of a table from `start_ms` up to before `end_ms`."""
    column = table.c.at_ms
    return select(table).where(column >= start_ms, column < end_ms)


def decisions_query(
    start_ms: int, end_ms: int, *, kinds: Iterable[Kind] | None, text: str
) -> Query:
    """Return the decisions of a window, newest first; see `Store.decisions`."""
    table = DECISIONS.c
    query = window(DECISIONS, start_ms, end_ms=end_ms)
    if kinds is not None:
        query = query.where(table.kind.in_([kind.value for kind in kinds]))
    if text:
        found = table.model.icontains(text, autoescape=True)
        for column in (table.device, table.reason, table.numbers):
            found = found | column.icontains(text, autoescape=True)
        query = query.where(found)
    return query.order_by(table.id.desc())


def interrupt_open_runs(engine: Engine, name: str) -> None:
    """Close the runs that a crash left open, at the last second that was stored."""
    with translated(name), engine.begin() as connection:
        last_ms = connection.execute(select(func.max(DEVICE_SAMPLES.c.at_ms))).scalar() or 0
        started_ms = RUNS.c.started_ms
        ended_ms = case((started_ms > last_ms, started_ms), else_=last_ms)
        connection.execute(
            update(RUNS)
            .where(RUNS.c.state == "open")
            .values(state="interrupted", ended_ms=ended_ms)
        )
