"""Output: results to stdout or a file, progress to stderr, tables for people."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from engine.errors import InputError

STDOUT = "-"


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add --json to a parser."""
    parser.add_argument(
        "--json", metavar="FILE", help="write one JSON object to FILE; - is stdout"
    )


def progress(line: str) -> None:
    """Tell a person that something goes on."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def say(line: str) -> None:
    """Print a line of the result."""
    sys.stdout.write(f"{line}\n")


def emit(document: object, target: str) -> None:
    """Write one JSON document to a file, or to stdout for `-`.

    Raises:
        InputError: The file cannot be written.
    """
    text = json.dumps(document, ensure_ascii=False, default=str) + "\n"
    if target == STDOUT:
        sys.stdout.write(text)
        return
    try:
        Path(target).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{target}: cannot be written: {error.strerror}") from error


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows in columns that are as wide as they need to be."""
    texts = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    for row in texts:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        say("  ".join(cells).rstrip())


def instant(at_ms: int | None) -> str:
    """Return wall time as text, UTC; "" for None."""
    if at_ms is None:
        return ""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
