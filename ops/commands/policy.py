"""Policy: shows, lists, compares and applies versions of a store that no station owns."""

from __future__ import annotations

import argparse
import getpass
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

from engine.errors import InputError
from engine.policy import Policy
from ops.commands.output import add_json, emit, instant, say, table
from ops.options import STORE, store_url
from storage import Store

LISTED = 50


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its verbs to the parser."""
    verbs = commands.add_parser("policy", help="versions of the policy").add_subparsers(
        dest="verb", required=True, metavar="VERB"
    )
    showing = _verb(verbs, "show", act=show)
    showing.add_argument("version", type=int, nargs="?", help="default: the last one")
    add_json(showing)
    listing = _verb(verbs, "list", act=show_list)
    listing.add_argument("--limit", type=int, default=LISTED)
    add_json(listing)
    comparing = _verb(verbs, "diff", act=diff)
    comparing.add_argument("old", type=int)
    comparing.add_argument("new", type=int)
    add_json(comparing)
    applying = _verb(verbs, "apply", act=apply)
    applying.add_argument("file", type=Path, help="TOML, as `policy show` prints it")
    applying.add_argument("--reason", default="applied from a file")
    applying.add_argument("--author", default=None, help="default: your user name")
    add_json(applying)


def show(chosen: argparse.Namespace) -> int:
    """Print a version as TOML.

    Raises:
        StoreError: There is none of that number.
    """
    with _opened(chosen) as store:
        if chosen.version is None:
            policy = store.last_policy() or Policy()
        else:
            policy = store.policy(chosen.version)
    if chosen.json:
        emit(policy.model_dump(mode="json"), chosen.json)
    else:
        say(policy.to_toml().rstrip())
    return 0


def show_list(chosen: argparse.Namespace) -> int:
    """Print the versions, newest first."""
    with _opened(chosen) as store:
        records = store.policies(limit=chosen.limit)
    if chosen.json:
        listed = [
            {"version": r.version, "at_ms": r.at_ms, "author": r.author, "reason": r.reason}
            for r in records
        ]
        emit(listed, chosen.json)
        return 0
    rows = [
        (record.version, instant(record.at_ms), record.author, record.reason)
        for record in records
    ]
    table(("version", "applied", "author", "reason"), rows)
    return 0


def diff(chosen: argparse.Namespace) -> int:
    """Print what differs between two versions.

    Raises:
        StoreError: One of them is not there.
    """
    with _opened(chosen) as store:
        found = store.policy(chosen.old).diff(store.policy(chosen.new))
    if chosen.json:
        emit([{"field": f, "old": a, "new": b} for f, a, b in found], chosen.json)
        return 0
    for field, old, new in found:
        say(f"{field}: {_text(old)} -> {_text(new)}")
    if not found:
        say(f"versions {chosen.old} and {chosen.new} do not differ")
    return 0


def apply(chosen: argparse.Namespace) -> int:
    """Make a file the next version; the next station starts under it.

    Raises:
        PolicyError: A value in the file is wrong.
        StoreError: Another process owns the store: edit there.
    """
    wanted = Policy.from_toml(_read(chosen.file))
    with Store.open(store_url(chosen.store)) as store:
        last = store.last_policy()
        version = last.version + 1 if last else 1
        changed = (last or Policy()).diff(wanted)
        if changed:
            store.save_policy(
                wanted.model_copy(update={"version": version}),
                author=chosen.author or getpass.getuser(),
                reason=chosen.reason,
                at_ms=time.time_ns() // 1_000_000,
            )
    if chosen.json:
        document = {
            "version": version if changed else None,
            "changed": [f for f, *_ in changed],
        }
        emit(document, chosen.json)
        return 0
    if not changed:
        say("nothing differs from the last version; nothing was applied")
        return 0
    said = (f"{field} {_text(old)} -> {_text(new)}" for field, old, new in changed)
    say(f"version {version}: {', '.join(said)}")
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
    return Store.open(store_url(chosen.store), read_only=True)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}; give a TOML file") from error


def _text(value: object) -> str:
    return "nothing" if value is None else json.dumps(value, default=str)
