"""Scenario: a fixed workload for simulations, read from its JSON file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self, cast

from engine.errors import InputError, PolicyError
from engine.load.arrivals import ArrivalKind
from engine.load.fields import Fields
from engine.policy import Policy
from engine.profile import Latency, Profile, ProfileKey, Spread
from engine.spec import DeviceSpec
from engine.units import NS_PER_S, ms_to_ns

MAX_SECONDS = 10_000_000


@dataclass(frozen=True, slots=True)
class ScenarioLoad:
    """Say how requests arrive and how they spread over the models.

    Attributes:
        cv: Coefficient of variation of the gaps, gamma only.
        zipf: Exponent of the popularity by rank; 0: all alike.
    """

    kind: ArrivalKind
    rate_hz: float
    cv: float
    zipf: float


@dataclass(frozen=True, slots=True)
class Scenario:
    """Hold a workload: devices, models in order of popularity, load, policy and seed.

    Attributes:
        profiles: One per model, the most popular first.
        duration_ns: Arrivals end then, and so does the simulation.
        warmup_ns: Requests that arrive before it do not count.
    """

    name: str
    devices: tuple[DeviceSpec, ...]
    profiles: tuple[Profile, ...]
    policy: Policy
    load: ScenarioLoad
    seed: int
    duration_ns: int
    warmup_ns: int

    def scaled(self, rate_scale: float) -> Self:
        """Return the same with so many times the rate.

        Raises:
            InputError: Not a number of more than 0.
        """
        if not 0 < rate_scale < float("inf"):
            raise InputError(f"rate scale: found {rate_scale}, wanted more than 0")
        rate_hz = self.load.rate_hz * rate_scale
        return replace(self, load=replace(self.load, rate_hz=rate_hz))

    def seeded(self, seed: int) -> Self:
        """Return the same under another chance.

        Raises:
            InputError: Less than 0.
        """
        if seed < 0:
            raise InputError(f"seed: found {seed}, wanted at least 0")
        return replace(self, seed=seed)

    def configured(self, settings: Iterable[str]) -> Self:
        """Return the same with settings such as `placement.policy=round_robin` changed.

        Raises:
            InputError: Not of the form FIELD=VALUE.
            PolicyError: No such field, or a wrong value.
        """
        policy = self.policy
        for setting in settings:
            policy = policy.replace(**_change(policy, setting))
        return replace(self, policy=policy)


def read_scenario(path: Path) -> Scenario:
    """Read a scenario file.

    Raises:
        InputError: One line: what cannot be read, or which field is wrong.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text file"
        raise InputError(f"{path}: cannot be read: {reason}") from error
    try:
        document = json.loads(text)
    except ValueError as error:
        raise InputError(f"{path}: not JSON: {error}") from error
    try:
        return parse_scenario(document)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def parse_scenario(document: object) -> Scenario:
    """Check a scenario's document and return it as a value.

    Raises:
        InputError: Names the first wrong field, what was found and wanted.
    """
    fields = Fields(document)
    models = fields.parts("models")
    duration_s = fields.number("duration_s", above=0)
    warmup_s = fields.number("warmup_s", 0.0)
    if duration_s > MAX_SECONDS:
        raise InputError(f"duration_s: found {duration_s:g}, wanted at most {MAX_SECONDS}")
    if warmup_s >= duration_s:
        raise InputError(
            f"warmup_s: found {warmup_s:g}, wanted less than duration_s ({duration_s:g})"
        )
    devices = tuple(_device(part) for part in fields.parts("devices"))
    profiles = tuple(_profile(part) for part in models)
    _check_unique("devices", [device.name for device in devices])
    _check_unique("models", [profile.key.model for profile in profiles])
    return Scenario(
        name=fields.text("name"),
        devices=devices,
        profiles=profiles,
        policy=_policy(models),
        load=_load(fields.part("load")),
        seed=fields.whole("seed", 0),
        duration_ns=round(duration_s * NS_PER_S),
        warmup_ns=round(warmup_s * NS_PER_S),
    )


def _device(part: Fields) -> DeviceSpec:
    part.choice("kind", ("simulated",), default="simulated")
    capacity, reserve = part.whole("capacity_bytes", least=1), part.whole("reserve_bytes", 0)
    if reserve >= capacity:
        raise InputError(
            f"{part.where('reserve_bytes')}: found {reserve}, "
            f"wanted less than capacity_bytes ({capacity})"
        )
    return DeviceSpec(
        name=part.text("name"),
        kind="simulated",
        capacity_bytes=capacity,
        reserve_bytes=reserve,
        addressed=True,
        load_bytes_per_s=part.number("load_bytes_per_s", above=0),
        move_bytes_per_s=part.number("move_bytes_per_s", above=0),
        source="scenario",
    )


def _profile(part: Fields) -> Profile:
    workspace, latency = part.part("workspace_bytes"), part.part("latency_ms")
    sigma = latency.number("sigma", 0.0)
    spread = latency.choice(
        "spread", ("none", "normal", "exponential"), default="normal" if sigma else "none"
    )
    times = Latency(
        floor_ns=ms_to_ns(latency.number("floor", 0.0)),
        fixed_ns=ms_to_ns(latency.number("fixed")),
        per_item_ns=ms_to_ns(latency.number("per_item")),
        spread=cast(Spread, spread),
        sigma=sigma,
    )
    if times.at(1) <= 0:
        raise InputError(f"{latency.path}: found 0 for one item, wanted more")
    return Profile(
        key=ProfileKey(part.text("name"), "simulated"),
        weight_bytes=part.whole("weight_bytes", least=1),
        workspace_fixed_bytes=workspace.whole("fixed"),
        workspace_item_bytes=workspace.whole("per_item"),
        latency=times,
        source=part.text("source", ""),
    )


def _policy(models: Iterable[Fields]) -> Policy:
    parts: dict[str, dict[str, object]] = {}
    for part in models:
        marks = part.part("watermarks")
        parts[part.text("name")] = {
            "low": marks.whole("low", least=1),
            "high": marks.whole("high", least=1),
            "timeout_ms": marks.number("timeout_ms"),
            "priority_class": part.whole("priority", 5),
            "slo_ms": part.number("slo_ms", above=0),
        }
    try:
        return Policy.parse({"models": parts})
    except PolicyError as error:
        raise InputError(str(error)) from error


def _load(part: Fields) -> ScenarioLoad:
    kind = part.choice("kind", ("constant", "poisson", "gamma"))
    popularity = part.part("popularity", {"kind": "uniform"})
    is_zipf = popularity.choice("kind", ("zipf", "uniform")) == "zipf"
    return ScenarioLoad(
        kind=cast(ArrivalKind, kind),
        rate_hz=part.number("rate_hz", above=0),
        cv=part.number("cv", above=0) if kind == "gamma" else 1.0,
        zipf=popularity.number("s") if is_zipf else 0.0,
    )


def _check_unique(name: str, found: list[str]) -> None:
    seen: set[str] = set()
    for index, one in enumerate(found):
        if one in seen:
            raise InputError(f"{name}[{index}].name: {one!r} is there twice; rename one")
        seen.add(one)


def _change(policy: Policy, setting: str) -> dict[str, object]:
    """Return a setting as arguments of `Policy.replace`; names of models may hold dots."""
    field, equals, text = setting.partition("=")
    if not equals or not field.strip():
        raise InputError(f"--set: found {setting!r}, wanted FIELD=VALUE")
    try:
        value: object = json.loads(text)
    except ValueError:
        value = text
    head, _, rest = field.strip().partition(".")
    if head not in type(policy).model_fields:
        known = ", ".join(type(policy).model_fields)
        raise PolicyError(f"{head}: no such part of the policy; there are {known}")
    if not rest:
        return {head: value}
    name, _, last = rest.rpartition(".")
    if head in {"models", "devices"} and not name:
        raise PolicyError(f"{field.strip()}: wanted {head}.NAME.FIELD=VALUE")
    return {head: {name: {last: value}} if name else {last: value}}
