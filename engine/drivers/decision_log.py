"""Decision log: the core's decisions as lines of text, and the hash of them all."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

from engine.decisions import Decision

LINES_PER_WRITE = 4096


class DecisionLog:
    """Hash the decisions, one line each, and hand the lines on in large pieces.

    The hash is that of the pieces' bytes in UTF-8, so that it can be checked
    with any tool on the file that they were written to.
    """

    __slots__ = ("_lines", "_sha", "_write")

    def __init__(self, write: Callable[[str], object] | None = None) -> None:
        """Start empty.

        Args:
            write: Takes text of whole lines.
        """
        self._lines: list[str] = []
        self._sha = sha256()
        self._write = write

    def add(self, decision: Decision) -> None:
        """Append a decision."""
        self._lines.append(decision.line())
        if len(self._lines) >= LINES_PER_WRITE:
            self._flush()

    def close(self) -> str:
        """Hand on what is left and return the hash of all lines."""
        self._flush()
        return self._sha.hexdigest()

    def _flush(self) -> None:
        if not self._lines:
            return
        text = "\n".join(self._lines) + "\n"
        self._lines.clear()
        self._sha.update(text.encode())
        if self._write is not None:
            self._write(text)
