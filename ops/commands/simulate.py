"""Simulate: runs a scenario on simulated devices and virtual time."""

from __future__ import annotations

import argparse
from pathlib import Path

from ops.commands.output import add_json, emit, say
from ops.simulate import simulate_file


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("simulate", help="run a scenario on simulated devices")
    parser.add_argument("scenario", type=Path, help="a scenario's JSON file")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        dest="settings",
        help="change the policy: placement.policy=round_robin; may be repeated",
    )
    parser.add_argument("--rate-scale", type=float, default=1.0, help="times the rate")
    parser.add_argument("--seed", type=int, help="in place of the scenario's")
    parser.add_argument("--decisions", type=Path, help="write every decision to this file")
    add_json(parser)
    parser.set_defaults(act=act)


def act(chosen: argparse.Namespace) -> int:
    """Simulate and report.

    Raises:
        InputError: A file, a field or a figure is wrong.
        PolicyError: A setting is wrong.
    """
    report = simulate_file(
        chosen.scenario,
        settings=chosen.settings,
        rate_scale=chosen.rate_scale,
        seed=chosen.seed,
        decisions=chosen.decisions,
    )
    if chosen.json:
        emit(report, chosen.json)
        return 0
    for name, value in report.items():
        say(f"{name}: {value}")
    return 0
