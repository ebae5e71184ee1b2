"""Operator: what a person orders by hand - load, evict, compact, convert, drain, pause."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import SupportsIndex, get_args

from engine.drivers.inputs import Inputs
from engine.errors import InputError
from engine.events import Command, Event, OperatorCommand
from engine.rules import Precision
from engine.spec import DeviceSpec


class Operator:
    """Check orders and pass them to the core; what came of them stands in the decisions."""

    def __init__(
        self, tell: Callable[[Event], object], inputs: Inputs, *, devices: Sequence[DeviceSpec]
    ) -> None:
        """Know which models and devices there are.

        Args:
            tell: Passes an event to the core.
        """
        self._tell = tell
        self._inputs = inputs
        self._names = [spec.name for spec in devices]

    def command(
        self, command: Command, *, author: str, model: str = "", device: str = ""
    ) -> None:
        """Load, evict, drain, pause, or one of their opposites; empty names mean all.

        Raises:
            InputError: Unknown model or device, or a load of no model.
        """
        self._check(model, device, author=author)
        if command is Command.LOAD and not model:
            raise InputError("load: say which model")
        self._tell(OperatorCommand(command, author, model, device))

    def compact(self, *, author: str, device: str = "", size_bytes: int = 0) -> None:
        """Open a hole by moving idle residents together; nobody is evicted for it.

        Args:
            device: "" for all.
            size_bytes: Hole to open; 0: the largest that moves can open.

        Raises:
            InputError: Unknown device, or less than no bytes.
        """
        self._check("", device, author=author)
        size = whole_bytes(size_bytes, "compact")
        self._tell(OperatorCommand(Command.COMPACT, author, "", device, size))

    def convert(self, model: str, precision: str, *, author: str, device: str = "") -> None:
        """Hold an idle resident's weights at another precision.

        Args:
            precision: `fp32`, `bf16` or `int8`.

        Raises:
            InputError: Unknown model, device or precision.
        """
        self._check(model, device, author=author)
        if precision not in get_args(Precision):
            raise InputError(
                f"convert: found precision {precision!r}, wanted one of "
                f"{', '.join(get_args(Precision))}"
            )
        self._tell(OperatorCommand(Command.CONVERT, author, model, device, precision=precision))

    def _check(self, model: str, device: str, *, author: str) -> None:
        if not isinstance(author, str):
            raise InputError(f"author: found {type(author).__name__}, wanted a name")
        if model and model not in self._inputs.specs:
            raise InputError(self._inputs.unknown(model))
        if device and device not in self._names:
            raise InputError(f"{device}: no such device; there are {', '.join(self._names)}")


def whole_bytes(size_bytes: SupportsIndex, what: str) -> int:
    """Return a size as a plain integer, whatever kind of integer it was.

    Raises:
        InputError: It is none, or less than 0.
    """
    try:
        size = index(size_bytes)
    except TypeError:
        raise InputError(f"{what}: found {size_bytes!r} bytes, wanted a whole number") from None
    if size < 0:
        raise InputError(f"{what}: found a hole of {size} B, wanted 0 or more")
    return size
