"""Say where fetched weights lie and whether they are there."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path

FETCH = "python -m sample_models.fetch"
CONVERTED = ("text_detector", "line_direction", "text_recognizer")


def cache_folder() -> Path:
    """Return the folder of fetched files: `MILLPOND_CACHE`, or one in the checkout."""
    chosen = os.environ.get("MILLPOND_CACHE")
    checkout = Path(__file__).resolve().parents[1]
    return Path(chosen) if chosen else checkout / ".cache" / "millpond"


def weights_path(name: str) -> Path:
    """Return where the converted weights of a model lie or would lie."""
    return cache_folder() / f"{name}.safetensors"


def graph_path(name: str) -> Path:
    """Return where the original graph of a model lies or would lie."""
    return cache_folder() / "onnx" / f"{name}.onnx"


def charset_path() -> Path:
    """Return where the recogniser's characters lie or would lie."""
    return cache_folder() / "latin_charset.json"


def photograph_path() -> Path:
    """Return where the page photograph lies or would lie."""
    return cache_folder() / "page.png"


def missing(*names: str) -> str:
    """Say that weights are missing and what to run; "" if all these models have theirs."""
    paths = [weights_path(name) for name in names]
    if "text_recognizer" in names:
        paths.append(charset_path())
    return "" if all(path.is_file() for path in paths) else f"weights missing: run `{FETCH}`"


@cache
def charset() -> tuple[str, ...]:
    """Return the recogniser's characters by class; class 0 is the blank, "".

    Raises:
        FileNotFoundError: They have not been fetched; the message says what to run.
    """
    path = charset_path()
    if not path.is_file():
        raise FileNotFoundError(f"{path.name} is missing: run `{FETCH}`")
    return tuple(json.loads(path.read_text(encoding="utf-8")))
