"""Scenario files: read into values, overridden by settings, refused with the field's path."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.errors import InputError, PolicyError
from engine.load.scenario import Scenario, parse_scenario, read_scenario
from engine.units import MIB
from tests.simulation.scenarios import device, model, scenario

SCENARIOS = Path(__file__).parents[3] / "benchmarks" / "scenarios"


def small() -> dict:
    return scenario([model("a.b", priority=2), model("c")], kind="gamma", cv=3)


def test_a_scenario_is_read_in_the_cores_units():
    found = parse_scenario(small())
    profile = found.profiles[0]
    assert (profile.key.model, profile.weight_bytes) == ("a.b", 10 * MIB)
    assert (profile.latency.at(2), profile.latency.spread) == (6_000_000, "normal")
    assert profile.workspace_bytes(3) == 4 * MIB
    assert found.devices[0].addressed and found.devices[0].pool_bytes == 66 * MIB
    assert found.policy.model("a.b").priority_class == 2
    assert found.policy.model("c").high == 8
    assert (found.duration_ns, found.warmup_ns) == (500_000_000, 100_000_000)
    assert (found.load.kind, found.load.cv, found.load.zipf) == ("gamma", 3, 0)


def test_the_benchmarks_scenarios_can_be_read():
    found = read_scenario(SCENARIOS / "one-card.json")
    assert (len(found.devices), len(found.profiles)) == (1, 100)
    assert (found.load.rate_hz, found.load.zipf, found.seed) == (150, 0.9, 7)


def test_settings_change_the_policy_also_of_models_whose_names_hold_dots():
    found = parse_scenario(small()).configured(
        ["placement.policy=round_robin", "models.a.b.high=4", "models.c.fill=patient"]
    )
    assert found.policy.placement.policy == "round_robin"
    assert (found.policy.model("a.b").high, found.policy.model("a.b").priority_class) == (4, 2)
    assert found.policy.model("c").fill == "patient"


def test_rate_and_seed_can_be_replaced():
    found = parse_scenario(small()).scaled(2.5).seeded(9)
    assert (found.load.rate_hz, found.seed) == (250, 9)


@pytest.mark.parametrize(
    "setting", ["placement.policy=magic", "colour=red", "models=3", "models.low=1"]
)
def test_a_wrong_setting_is_a_policy_error_in_one_line(setting: str):
    with pytest.raises(PolicyError) as found:
        parse_scenario(small()).configured([setting])
    assert "\n" not in str(found.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.scaled(-1),
        lambda s: s.scaled(float("nan")),
        lambda s: s.seeded(-1),
        lambda s: s.configured(["low"]),
    ],
)
def test_a_wrong_argument_is_an_input_error(change: Callable[[Scenario], Scenario]):
    with pytest.raises(InputError):
        change(parse_scenario(small()))


def broken(where: str, value: object) -> dict:
    """Return a scenario with one field replaced; `where` is its path."""
    document = json.loads(json.dumps(small()))
    *path, last = [int(key) if key.isdigit() else key for key in where.split("/")]
    part = document
    for key in path:
        part = part[key]
    part[last] = value
    return document


@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        ("load/rate_hz", -5, "load.rate_hz: found -5, wanted more than 0"),
        ("load/rate_hz", float("nan"), "load.rate_hz: found nan, wanted a number"),
        ("load/kind", "ramp", "load.kind: found 'ramp', wanted constant or poisson or gamma"),
        ("load/cv", None, "load.cv: found None, wanted a number"),
        ("models", [], "models: found [], wanted a list of at least one object"),
        ("models/1/name", "a.b", "models[1].name: 'a.b' is there twice; rename one"),
        ("models/1/weight_bytes", 1.5, "models[1].weight_bytes: found 1.5"),
        ("models/0/latency_ms/sigma", -1, "models[0].latency_ms.sigma: found -1"),
        ("models/0/latency_ms", {"fixed": 0, "per_item": 0}, "models[0].latency_ms: found 0"),
        ("models/0/watermarks/low", 9, "models.a.b: low (9) is above high (8)"),
        ("models/0/priority", 12, "models.a.b.priority_class:"),
        ("devices/0/kind", "cuda", "devices[0].kind: found 'cuda', wanted simulated"),
        ("devices/0/reserve_bytes", 10**12, "devices[0].reserve_bytes: found 1000000000000"),
        ("warmup_s", 3, "warmup_s: found 3, wanted less than duration_s (0.5)"),
        ("seed", "x", "seed: found 'x', wanted a number"),
    ],
)
def test_a_bad_field_is_named_with_its_path(where: str, value: object, message: str):
    with pytest.raises(InputError) as found:
        parse_scenario(broken(where, value))
    assert str(found.value).startswith(message) and "\n" not in str(found.value)


def test_a_missing_field_is_named():
    document = scenario([model("a")], devices=[device()])
    del document["load"]["rate_hz"]
    with pytest.raises(InputError, match=r"load\.rate_hz: missing; wanted a number"):
        parse_scenario(document)


def test_files_that_cannot_be_read_are_refused_in_one_line(tmp_path: Path):
    bad = tmp_path / "bad.json"
    bad.write_text("{")
    for path, message in (
        (tmp_path / "none.json", "none.json: cannot be read: No such file"),
        (tmp_path, "cannot be read: Is a directory"),
        (bad, "bad.json: not JSON"),
    ):
        with pytest.raises(InputError) as found:
            read_scenario(path)
        assert message in str(found.value) and "\n" not in str(found.value)
