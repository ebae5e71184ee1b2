"""Notebook files: which runbooks there are, what they are called, what can be set."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.errors import InputError

Parameter = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Runbook:
    """Describe one notebook that can be run with parameters.

    Attributes:
        name: Its file's name without the ending.
        title: Its first heading.
        parameters: What its cell tagged `parameters` sets, with the defaults.
    """

    name: str
    title: str
    path: Path
    parameters: Mapping[str, Parameter]


def find_runbooks(folder: Path) -> tuple[Runbook, ...]:
    """Return the notebooks of a folder by name; one that cannot be read is left out."""
    found = (_read(path) for path in sorted(folder.glob("*.ipynb")))
    return tuple(runbook for runbook in found if runbook is not None)


def checked(runbook: Runbook, parameters: Mapping[str, object]) -> dict[str, Parameter]:
    """Return parameters that the notebook knows, of the kinds of its defaults.

    Raises:
        InputError: An unknown name, or a value of another kind.
    """
    good: dict[str, Parameter] = {}
    for name, value in parameters.items():
        if name not in runbook.parameters:
            known = ", ".join(runbook.parameters) or "none"
            raise InputError(f"{runbook.name}: {name}: no such parameter; there are {known}")
        default = runbook.parameters[name]
        wanted = (int, float) if type(default) in (int, float) else (type(default),)
        is_right = default is None or (type(value) in wanted)
        if not is_right or not isinstance(value, str | int | float | bool | None):
            raise InputError(
                f"{runbook.name}: {name}: found {value!r}, wanted a value like {default!r}"
            )
        good[name] = value
    return good


def _read(path: Path) -> Runbook | None:
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        title, parameters = path.stem, dict[str, Parameter]()
        for cell in reversed(cells):
            text = "".join(cell["source"])
            if cell["cell_type"] == "markdown" and text.startswith("# "):
                title = text.splitlines()[0].removeprefix("# ")
            elif "parameters" in cell.get("metadata", {}).get("tags", []):
                parameters = _assignments(text)
    except (OSError, ValueError, KeyError, TypeError, SyntaxError):
        return None
    return Runbook(path.stem, title, path, parameters)


def _assignments(code: str) -> dict[str, Parameter]:
    """Return the plain values that a cell assigns to plain names."""
    found: dict[str, Parameter] = {}
    for node in ast.parse(code).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            value = ast.literal_eval(node.value)
            if isinstance(value, str | int | float | bool | None):
                found[node.targets[0].id] = value
    return found
