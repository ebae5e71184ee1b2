"""Doctor: prints what is on this machine, what works, and what to install."""

from __future__ import annotations

import argparse
import dataclasses
import os

from ops.commands.output import add_json, emit, progress, say
from ops.doctor import examine
from ops.options import Options, add_options


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("doctor", help="what works here, and what to install")
    add_options(parser, os.environ)
    add_json(parser)
    parser.set_defaults(act=act)


def act(chosen: argparse.Namespace) -> int:
    """Print the findings.

    Returns:
        1 if something that every station needs does not work.
    """
    progress("looking at this machine; torch takes a moment")
    options = Options.chosen(chosen)
    findings = examine(options.store, options.models)
    is_well = all(finding.is_ok or finding.is_optional for finding in findings)
    if chosen.json:
        found = [dataclasses.asdict(finding) for finding in findings]
        emit({"is_well": is_well, "findings": found}, chosen.json)
        return 0 if is_well else 1
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        mark = "ok" if finding.is_ok else "--" if finding.is_optional else "NO"
        todo = f"  ->  {finding.todo}" if finding.todo else ""
        say(f"{mark}  {finding.name.ljust(width)}  {finding.text}{todo}")
    return 0 if is_well else 1
