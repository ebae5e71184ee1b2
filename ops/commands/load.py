"""Load: puts load on models of this process, in a store of its own, and reports the figures."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from engine.errors import InputError
from engine.load.plan import KINDS, LoadPlan
from ops.commands.output import add_json, emit, progress, say
from ops.load_status import LoadStatus
from ops.models import resolve
from ops.options import Options, add_options
from ops.station import Station

AUTHOR = "millpond load"
DRAIN_S = 60.0
REPORT_EVERY_S = 5.0


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "load", help="put load on a model or pipeline and report what came back"
    )
    add_options(parser, {**os.environ, "MILLPOND_STORE": ""})
    parser.add_argument("--model", required=True, help="name of a model or pipeline")
    parser.add_argument("--kind", choices=KINDS, default="constant")
    parser.add_argument("--rate", type=float, default=1.0, help="requests per second")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--clients", type=int, default=1, help="for --kind closed")
    parser.add_argument("--cv", type=float, default=2.0, help="for --kind burst")
    parser.add_argument("--items", type=int, default=1, help="items per request, for models")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--class", type=int, dest="priority_class", help="0 to 9")
    parser.add_argument("--deadline-ms", type=float)
    add_json(parser)
    parser.set_defaults(act=act)


def act(chosen: argparse.Namespace) -> int:
    """Run one load to its end.

    Raises:
        InputError: A wrong figure, or no such model.
        StoreError: The store cannot be used.
    """
    plan = LoadPlan(
        target=chosen.model,
        kind=chosen.kind,
        rate_hz=chosen.rate,
        cv=chosen.cv,
        clients=chosen.clients,
        items=chosen.items,
        seconds=chosen.seconds,
        seed=chosen.seed,
        priority_class=chosen.priority_class,
        deadline_ms=chosen.deadline_ms,
    )
    options = Options.chosen(chosen)
    catalog = resolve(options.models).only(plan.target)
    with (
        _store(options.store) as store,
        Station.open(
            store=store, devices=options.devices, models=catalog, progress=progress
        ) as station,
    ):
        status = _follow(station, plan)
    document = report(status)
    if chosen.json:
        emit(document, chosen.json)
    else:
        for name, value in document.items():
            say(f"{name}: {value}")
    return 0


def report(status: LoadStatus) -> dict[str, object]:
    """Return a load's figures as one document, its scores beside the counts."""
    counts = ("offered", "sent", "completed", "failed", "refused", "expired", "cancelled")
    document: dict[str, object] = {
        "target": status.plan.target,
        **{name: getattr(status, name) for name in counts},
        "dropped": status.dropped,
        "offered_hz": round(status.offered_hz, 3),
        "completed_hz": round(status.completed_hz, 3),
        "goodput_hz": round(status.goodput_hz, 3),
        "latency_ms": {name: round(ms, 3) for name, ms in status.latency_ms.items()},
        "slip_ms_p99": round(status.slip_ms_p99, 3),
        "is_valid": status.is_valid,
        "seconds": round(status.seconds, 3),
        "error": status.error,
    }
    scores = {name: round(value, 6) for name, value in status.scores.items()}
    return document | {name: value for name, value in scores.items() if name not in document}


def _follow(station: Station, plan: LoadPlan) -> LoadStatus:
    loads = station.loads
    loads.start(plan, author=AUTHOR)
    while not loads.wait(REPORT_EVERY_S):
        status = loads.status()
        assert status is not None, "a load was started"
        progress(f"{status.sent} sent, {status.completed} completed, {status.failed} failed")
        if plan.seconds is not None and status.seconds > plan.seconds + DRAIN_S:
            loads.stop()
    status = loads.status()
    assert status is not None, "a load was started"
    if not status.offered:
        raise InputError(
            f"{plan.target}: nothing was sent: "
            f"{status.error or 'the time is too short for the rate; give it more --seconds'}"
        )
    return status


@contextmanager
def _store(url: str) -> Iterator[str]:
    """Yield the store that was asked for, or one that is gone afterwards."""
    if url:
        yield url
        return
    with tempfile.TemporaryDirectory(prefix="millpond-") as folder:
        yield f"sqlite:///{folder}/load.db"
