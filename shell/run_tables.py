"""Run tables: a recorded run as rows, figures and marks that people read."""

from __future__ import annotations

import json
import time

from engine.decisions import Kind
from engine.errors import EngineError
from ops.recent import Mark
from shell.tables import Rows
from shell.words import figure, milliseconds
from storage import Store
from storage.samples import RunRecord

RIGHT = ("lasted", "goodput", "p50", "p99")
MOST_MARKS = 2000
NOT_FIGURES = ("is_valid",)


def when(at_ms: int) -> str:
    """Return an instant as local date and time."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at_ms / 1000))


def lasted(run: RunRecord) -> str | None:
    """Return how long a run took; None while it is open."""
    if run.ended_ms is None:
        return None
    return f"{(run.ended_ms - run.started_ms) / 1000:.0f} s"


def label(run: RunRecord) -> str:
    """Return a run in one line, as a list of choices shows it."""
    return f"{run.id} · {run.name or run.kind} · {when(run.started_ms)} · {run.state}"


def row(run: RunRecord) -> dict[str, object]:
    """Return a run as a row."""
    return {
        "run": run.id,
        "name": run.name or run.kind,
        "kind": run.kind,
        "state": run.state,
        "started": when(run.started_ms),
        "lasted": lasted(run),
        "goodput": _rate(run, "goodput_hz"),
        "p50": _time(run, "latency_ms_p50"),
        "p99": _time(run, "latency_ms_p99"),
        "valid": {1.0: "yes", 0.0: "no"}.get(run.summary.get("is_valid", -1.0)),
        "policy": run.first_policy,
        "author": run.author,
    }


def _rate(run: RunRecord, name: str) -> str | None:
    value = run.summary.get(name)
    return None if value is None else f"{figure(value)} req/s"


def _time(run: RunRecord, name: str) -> str | None:
    value = run.summary.get(name)
    return None if value is None else milliseconds(value)


def facts(run: RunRecord) -> list[str]:
    """Return what else is to be known of a run: state, machine, code, author."""
    took = f"{run.state} after {lasted(run)}" if run.ended_ms is not None else run.state
    return [took, run.hardware, f"code {run.code_version}", f"by {run.author}"]


def figures(run: RunRecord) -> list[tuple[str, str, str | None]]:
    """Return the five figures on top of a run: (label, value, note)."""
    found = run.summary
    lost = sum(int(found.get(name, 0)) for name in ("failed", "refused", "expired", "dropped"))
    valid = {1.0: "valid", 0.0: "not valid: the generator did not keep up"}
    return [
        ("Offered", _rate(run, "offered_hz") or "–", f"{found.get('offered', 0):.0f} arrivals"),
        ("Goodput", _rate(run, "goodput_hz") or "–", valid.get(found.get("is_valid", -1.0))),
        ("p50 latency", _time(run, "latency_ms_p50") or "–", None),
        ("p99 latency", _time(run, "latency_ms_p99") or "–", None),
        ("Completed", f"{found.get('completed', 0):.0f}", f"{lost} lost"),
    ]


def summary(run: RunRecord) -> Rows:
    """Return every figure of a run."""
    return [
        {"figure": name.replace("_", " "), "value": float(f"{value:.5g}")}
        for name, value in run.summary.items()
        if name not in NOT_FIGURES
    ]


def plan(run: RunRecord) -> Rows:
    """Return the load that a run sent, field by field; nothing if it sent none."""
    if not run.load:
        return []
    fields = json.loads(run.load)
    return [{"load": name, "value": str(value)} for name, value in fields.items()]


def policy(store: Store, version: int) -> str:
    """Return the policy that was in force at a run's start, as TOML, or why not."""
    try:
        return store.policy(version).to_toml()
    except EngineError as error:
        return f"# {error}"


def marks(store: Store, start_ms: int, *, end_ms: int) -> tuple[Mark, ...]:
    """Return the policy versions and evictions of a run as marks, oldest first."""
    versions = [
        Mark(p.at_ms, "policy", f"version {p.version} by {p.author}: {p.reason}")
        for p in store.policies(limit=MOST_MARKS)
        if start_ms <= p.at_ms <= end_ms
    ]
    gone = [
        Mark(r.at_ms, "evict", f"{r.decision.model} {r.decision.device}")
        for r in store.decisions(start_ms, end_ms, limit=MOST_MARKS, kinds=[Kind.EVICT])
    ]
    return tuple(sorted([*versions, *gone], key=lambda mark: mark.at_ms))
