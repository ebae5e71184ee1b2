"""Fields: read numbers and names out of a JSON document, and say exactly what is wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import cast

from engine.errors import InputError


class Fields:
    """Read one object of a document; every error names the field by its whole path."""

    __slots__ = ("_document", "path")

    def __init__(self, document: object, path: str = "") -> None:
        """Check that it is an object.

        Raises:
            InputError: It is something else.
        """
        if not isinstance(document, Mapping):
            raise InputError(
                f"{path or 'scenario'}: found {_shown(document)}, wanted an object"
            )
        self._document = cast(Mapping[str, object], document)
        self.path = path

    def where(self, name: str) -> str:
        """Return the whole path of a field."""
        return f"{self.path}.{name}" if self.path else name

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text that is not empty, or the default."""
        value = self._document.get(name, default)
        if not isinstance(value, str) or (not value and default is None):
            raise self._wrong(name, "a text")
        return value

    def choice(self, name: str, options: Sequence[str], *, default: str | None = None) -> str:
        """Return one of some texts."""
        value = self.text(name, default)
        if value not in options:
            raise self._wrong(name, " or ".join(options))
        return value

    def number(
        self, name: str, default: float | None = None, *, above: float | None = None
    ) -> float:
        """Return a finite number of at least 0, or more than `above`."""
        value = self._document.get(name, default)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not math.isfinite(cast(float, value)):
            raise self._wrong(name, "a number")
        number = cast(float, value)
        if above is None and number < 0:
            raise self._wrong(name, "at least 0")
        if above is not None and number <= above:
            raise self._wrong(name, f"more than {above:g}")
        return number

    def whole(self, name: str, default: int | None = None, *, least: int = 0) -> int:
        """Return a whole number of at least `least`."""
        number = self.number(name, default)
        if number != int(number) or number < least:
            raise self._wrong(name, f"a whole number of at least {least}")
        return int(number)

    def part(self, name: str, default: Mapping[str, object] | None = None) -> Fields:
        """Return an object inside."""
        if name not in self._document and default is None:
            raise self._wrong(name, "an object")
        return Fields(self._document.get(name, default), self.where(name))

    def parts(self, name: str) -> tuple[Fields, ...]:
        """Return the objects of a list that is not empty."""
        value = self._document.get(name)
        if not isinstance(value, list) or not value:
            raise self._wrong(name, "a list of at least one object")
        return tuple(
            Fields(one, f"{self.where(name)}[{index}]") for index, one in enumerate(value)
        )

    def _wrong(self, name: str, wanted: str) -> InputError:
        if name not in self._document:
            return InputError(f"{self.where(name)}: missing; wanted {wanted}")
        return InputError(
            f"{self.where(name)}: found {_shown(self._document[name])}, wanted {wanted}"
        )


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
