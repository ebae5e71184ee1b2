"""Differences: what tells policies apart, in the words of the forms; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import BaseModel

from engine.policy import Policy

Changes = Mapping[str, object]
Row = dict[str, object]


def flat(policy: Policy, names: Sequence[str]) -> dict[str, object]:
    """Return every setting by name, as it holds for each model.

    A model without a part of its own follows the default; what holds is what
    an operator compares, not where it was written.
    """
    whole: dict[str, object] = {}
    for name in dict.fromkeys([*names, *policy.models]):
        whole |= _part(name, policy.model(name))
    for name, device in policy.devices.items():
        whole |= _part(name, device)
    for name in ("placement", "memory", "admission"):
        whole |= _part(name, getattr(policy, name))
    return whole


def _part(name: str, part: BaseModel) -> dict[str, object]:
    return {f"{name} · {field}": value for field, value in part.model_dump().items()}


def between(columns: Mapping[str, Policy], names: Sequence[str]) -> list[Row]:
    """Return the settings in which policies differ, one column per policy, as text.

    Args:
        columns: Policies by the title of their column, two or more.
        names: Models and pipelines that there are.
    """
    flats = {title: flat(policy, names) for title, policy in columns.items()}
    settings = list(dict.fromkeys(key for one in flats.values() for key in one))
    rows: list[Row] = []
    for setting in settings:
        values = {title: _text(one.get(setting)) for title, one in flats.items()}
        if len(set(values.values())) > 1:
            rows.append({"setting": setting, **values})
    return rows


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "–" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
