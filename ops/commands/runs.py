"""Runs: lists, shows, exports and deletes what was recorded."""

from __future__ import annotations

import argparse
import dataclasses
import os
from collections.abc import Callable
from pathlib import Path

from ops.commands.output import add_json, emit, instant, say, table
from ops.options import STORE, store_url
from storage import Store
from storage.exports import export_run
from storage.samples import RunRecord

LISTED = 50
FORMATS = ("csv", "parquet", "json")


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its verbs to the parser."""
    verbs = commands.add_parser("runs", help="recorded runs").add_subparsers(
        dest="verb", required=True, metavar="VERB"
    )
    listing = _verb(verbs, "list", act=show_list)
    listing.add_argument("--limit", type=int, default=LISTED)
    add_json(listing)
    showing = _verb(verbs, "show", act=show_one)
    showing.add_argument("run", type=int)
    add_json(showing)
    exporting = _verb(verbs, "export", act=export)
    exporting.add_argument("run", type=int)
    exporting.add_argument("--to", type=Path, default=Path("out"), help="a folder")
    exporting.add_argument("--format", choices=FORMATS, default="csv")
    _verb(verbs, "delete", act=delete).add_argument("run", type=int)


def show_list(chosen: argparse.Namespace) -> int:
    """Print the runs, newest first."""
    with _opened(chosen) as store:
        runs = store.runs(limit=chosen.limit)
    if chosen.json:
        emit([dataclasses.asdict(run) for run in runs], chosen.json)
        return 0
    if not runs:
        say(f"{chosen.store}: no runs yet; start a load in the dashboard to record one")
        return 0
    table(("id", "name", "kind", "state", "started", "seconds"), map(_row, runs))
    return 0


def show_one(chosen: argparse.Namespace) -> int:
    """Print one run with its figures.

    Raises:
        StoreError: There is none of that number.
    """
    with _opened(chosen) as store:
        run = store.run(chosen.run)
    document = dataclasses.asdict(run)
    if chosen.json:
        emit(document, chosen.json)
        return 0
    for name, value in (document | document.pop("summary")).items():
        say(f"{name}: {value}")
    return 0


def export(chosen: argparse.Namespace) -> int:
    """Write one run to files and print their names.

    Raises:
        StoreError: There is none of that number, or it cannot be written.
    """
    with _opened(chosen) as store:
        for path in export_run(store, chosen.run, folder=chosen.to, file_format=chosen.format):
            say(str(path))
    return 0


def delete(chosen: argparse.Namespace) -> int:
    """Delete one run.

    Raises:
        StoreError: There is none of that number, or another process owns the store.
    """
    with Store.open(store_url(chosen.store)) as store:
        store.delete_run(chosen.run)
    say(f"run {chosen.run} is deleted")
    return 0


def _verb(
    verbs: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    *,
    act: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    parser = verbs.add_parser(name, help=(act.__doc__ or "").splitlines()[0])
    parser.add_argument("--store", default=os.environ.get("MILLPOND_STORE", STORE))
    parser.set_defaults(act=act)
    return parser


def _opened(chosen: argparse.Namespace) -> Store:
    """Open the store for reading, which its owner does not mind."""
    return Store.open(store_url(chosen.store), read_only=True)


def _row(run: RunRecord) -> tuple[object, ...]:
    seconds = "" if run.ended_ms is None else f"{(run.ended_ms - run.started_ms) / 1000:.1f}"
    return run.id, run.name, run.kind, run.state, instant(run.started_ms), seconds
