"""Simulate: run a scenario file on virtual time and report it as one JSON object."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from engine.drivers.simulated import simulate
from engine.errors import InputError
from engine.load.scenario import Scenario, read_scenario


def simulate_file(
    path: Path,
    *,
    settings: Sequence[str] = (),
    rate_scale: float = 1.0,
    seed: int | None = None,
    decisions: Path | None = None,
) -> dict[str, object]:
    """Simulate a scenario under some changes and return its report.

    Args:
        settings: Changes of the policy, such as `placement.policy=round_robin`.
        rate_scale: Times the scenario's rate; more than 0.
        seed: In place of the scenario's own.
        decisions: Where to write the decision log, one decision per line; the
            report's hash is that of this file.

    Raises:
        InputError: A file cannot be read or written, a field or argument is wrong.
        PolicyError: A setting is wrong.
    """
    scenario = read_scenario(path).configured(settings).scaled(rate_scale)
    if seed is not None:
        scenario = scenario.seeded(seed)
    if decisions is None:
        return simulate(scenario).report()
    return _simulate_and_write(scenario, decisions)


def _simulate_and_write(scenario: Scenario, target: Path) -> dict[str, object]:
    try:
        with target.open("w", encoding="utf-8", newline="\n") as file:
            return simulate(scenario, write=file.write).report()
    except OSError as error:
        raise InputError(f"{target}: cannot be written: {error.strerror}") from error
