"""Plan: what load to put on a model or pipeline, as one validated value."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Literal, Self, cast, get_args

from engine.errors import InputError

Kind = Literal["constant", "poisson", "burst", "closed"]
KINDS: tuple[str, ...] = get_args(Kind)
MAX_RATE_HZ = 1_000_000.0
MAX_CLIENTS = 4096
MAX_ITEMS = 65_536
Number = int | float | None


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """Say what to send where: open loop at a rate, or closed loop with some clients.

    Open loop is the default, because clients that wait for their results stop
    asking when the engine stalls, and the latency looks better than it is.

    Attributes:
        target: Name of a model or pipeline.
        rate_hz: Requests per second, open loop.
        cv: Coefficient of variation of the gaps between arrivals, `burst` only.
        clients: How many wait for their result before they ask again, `closed` only.
        items: Items per request; 1 for pipelines.
        seconds: How long; None: until it is stopped.
        seed: Arrivals and inputs follow from it.
        priority_class: 0 to 9; None: the policy's for the target.
        deadline_ms: Of every request, from its sending; None: the policy's.
    """

    target: str
    kind: Kind = "constant"
    rate_hz: float = 1.0
    cv: float = 2.0
    clients: int = 1
    items: int = 1
    seconds: float | None = None
    seed: int = 0
    priority_class: int | None = None
    deadline_ms: float | None = None

    def __post_init__(self) -> None:
        """Refuse what nobody can send.

        Raises:
            InputError: Names the field, what was found and what was wanted.
        """
        if not (self.target and _is_text(self.target)):
            raise InputError(f"target: found {self.target!r}, wanted the name of a model")
        if self.kind not in KINDS:
            raise InputError(f"kind: found {self.kind!r}, wanted {', '.join(KINDS)}")
        _check("rate_hz", self.rate_hz, bounds=(1e-3, MAX_RATE_HZ))
        _check("cv", self.cv, bounds=(0.01, 100))
        _check("clients", self.clients, bounds=(1, MAX_CLIENTS), is_whole=True)
        _check("items", self.items, bounds=(1, MAX_ITEMS), is_whole=True)
        _check("seed", self.seed, bounds=(0, 2**63 - 1), is_whole=True)
        if self.seconds is not None:
            _check("seconds", self.seconds, bounds=(1e-3, 1e7))
        if self.priority_class is not None:
            _check("priority_class", self.priority_class, bounds=(0, 9), is_whole=True)
        if self.deadline_ms is not None:
            _check("deadline_ms", self.deadline_ms, bounds=(1e-3, 3.6e6))

    def to_json(self) -> str:
        """Return the plan as one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` or a person wrote.

        Raises:
            InputError: Not JSON, an unknown field, or a wrong value.
        """
        try:
            document = json.loads(text)
        except ValueError as error:
            raise InputError(f"load: not JSON: {error}") from error
        if not isinstance(document, Mapping):
            raise InputError(f"load: found {document!r}, wanted an object")
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(document) - known)
        if unknown:
            raise InputError(
                f"{unknown[0]}: no such field; there are {', '.join(sorted(known))}"
            )
        if "target" not in document:
            raise InputError("target: missing; wanted the name of a model or pipeline")
        values = cast(Mapping[str, object], document)
        return cls(**values)  # type: ignore[arg-type]  # the class checks them itself


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _check(
    name: str, value: Number, *, bounds: tuple[float, float], is_whole: bool = False
) -> None:
    """Refuse a value that is no number, not finite, or out of its bounds."""
    low, high = bounds
    is_number = isinstance(value, int) or (isinstance(value, float) and not is_whole)
    if not is_number or isinstance(value, bool):
        kind = "a whole number" if is_whole else "a number"
        raise InputError(f"{name}: found {value!r}, wanted {kind}")
    assert value is not None, "None is no number"
    if not (math.isfinite(value) and low <= value <= high):
        raise InputError(f"{name}: found {value}, wanted {low:g} to {high:g}")
