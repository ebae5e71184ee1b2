"""The policy: the one document that holds all that an operator can edit."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Annotated, Literal, Self

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from engine.errors import PolicyError
from engine.rules import CompiledPolicy, Fill, ModelRules, PlacementWeights, Watermarks
from engine.units import MIB, ms_to_ns

Milliseconds = Annotated[float, Field(ge=0, le=3_600_000, allow_inf_nan=False)]
Ratio = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Weight = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]
Mebibytes = Annotated[float, Field(ge=4, allow_inf_nan=False)]
PLACEMENTS = ("round_robin", "least_loaded", "memory_aware")


class _Part(BaseModel):
    """Share what all parts of the document have: frozen, and no unknown field."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ModelPolicy(_Part):
    """Say how one model's requests are batched, how urgent they are, what is promised.

    Attributes:
        low: Queued items at which a batch is prepared.
        high: Queued items at which it must leave, and its largest size.
        timeout_ms: Longest wait of the oldest request before it goes in a smaller batch.
        fill: `eager` leaves when the device is free; `patient` when full or due.
        priority_class: 0 is the most urgent, 9 the least.
        weight: Share of the devices' time inside its class, relative to the others'.
        slo_ms: Latency that counts as good; goodput is measured against it.
        deadline_ms: Default deadline of requests; None: no deadline.
        max_batch_ms: Longest expected run of one batch; None: no cap.
        pinned: Its residents are never evicted.
    """

    low: int = Field(default=1, ge=1, le=65_536)
    high: int = Field(default=16, ge=1, le=65_536)
    timeout_ms: Milliseconds = 5.0
    fill: Fill = "eager"
    priority_class: int = Field(default=5, ge=0, le=9)
    weight: float = Field(default=1.0, ge=0.01, le=100, allow_inf_nan=False)
    slo_ms: float = Field(default=5000.0, gt=0, le=3_600_000, allow_inf_nan=False)
    deadline_ms: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    max_batch_ms: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    pinned: bool = False

    @model_validator(mode="after")
    def _low_is_not_above_high(self) -> Self:
        if self.low > self.high:
            raise ValueError(
                f"low ({self.low}) is above high ({self.high}); lower low or raise high"
            )
        return self


class DevicePolicy(_Part):
    """Say how much of a device's arena may be used; None: all of it."""

    pool_mib: Mebibytes | None = None


class PlacementPolicy(_Part):
    """Choose the placement policy and the weights of `memory_aware`'s terms.

    Every term is a number from 0 (best) upwards; a device's score is their
    weighted sum and the lowest wins.
    """

    policy: Literal["round_robin", "least_loaded", "memory_aware"] = "memory_aware"
    headroom: Weight = 1.0
    fragmentation: Weight = 0.5
    queue: Weight = 2.0
    swap: Weight = 2.0
    victim_class: Weight = 1.0


class MemoryPolicy(_Part):
    """Say how room is made on a device."""

    eviction: Literal["lru"] = "lru"


class AdmissionPolicy(_Part):
    """Bound the queues and the waits.

    Attributes:
        queue_items: Most items waiting per model; beyond it `submit` refuses.
        queue_mib: Most bytes of waiting payloads, all models together.
        aging_ms: A waiting request gains one class per this time.
        pages_in_flight: Most pipeline inputs being worked on at once, per pipeline.
        pages_waiting: Most pipeline inputs waiting for that, per pipeline.
        retry_batches: Most extra runs spent on finding the culprit of a failed batch.
    """

    queue_items: int = Field(default=4096, ge=1, le=10_000_000)
    queue_mib: float = Field(default=1024.0, gt=0, allow_inf_nan=False)
    aging_ms: float = Field(default=2000.0, ge=1, le=3_600_000, allow_inf_nan=False)
    pages_in_flight: int = Field(default=8, ge=1, le=4096)
    pages_waiting: int = Field(default=64, ge=0, le=100_000)
    retry_batches: int = Field(default=16, ge=0, le=1024)


class Policy(_Part):
    """Hold everything an operator can edit, in human units; a value, never changed in place.

    A model without an entry in `models` follows `default`. `version` counts
    applied documents; `apply` sets it.
    """

    version: int = Field(default=0, ge=0)
    default: ModelPolicy = ModelPolicy()
    models: Mapping[str, ModelPolicy] = Field(default_factory=dict)
    devices: Mapping[str, DevicePolicy] = Field(default_factory=dict)
    placement: PlacementPolicy = PlacementPolicy()
    memory: MemoryPolicy = MemoryPolicy()
    admission: AdmissionPolicy = AdmissionPolicy()

    def model(self, name: str) -> ModelPolicy:
        """Return the part that holds for that model."""
        return self.models.get(name, self.default)

    def replace(self, **changes: object) -> Policy:
        """Return a policy with these fields changed, validated as a whole.

        Nested fields are given as dicts and merged: a model that had no entry
        starts from `default`; None in place of a dict removes the entry.

            policy.replace(models={"ranker": {"low": 4, "high": 32}})

        Raises:
            PolicyError: A value is wrong; says which field, what was found and wanted.
        """
        document = self.model_dump()
        for name, change in changes.items():
            document[name] = self._merged(name, document.get(name), change=change)
        return Policy.parse(document)

    def _merged(self, name: str, old: object, *, change: object) -> object:
        if isinstance(change, BaseModel):
            return change.model_dump()
        if not isinstance(change, Mapping) or not isinstance(old, Mapping):
            return change
        if name not in ("models", "devices"):
            return {**old, **change}
        base = self.default.model_dump() if name == "models" else {}
        merged = dict(old)
        for key, fields in change.items():
            if fields is None:
                merged.pop(key, None)
                continue
            new = fields.model_dump() if isinstance(fields, BaseModel) else fields
            merged[key] = {**merged.get(key, base), **new}
        return merged

    @classmethod
    def parse(cls, document: object) -> Policy:
        """Validate a plain document (dicts and numbers).

        Raises:
            PolicyError: Names the first wrong field and what is wrong with it.
        """
        try:
            return cls.model_validate(document)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "policy"
            message = first["msg"].removeprefix("Value error, ")
            found = first.get("input")
            shown = "" if isinstance(found, Mapping) else f" (found {found!r})"
            raise PolicyError(f"{where}: {message}{shown}") from error

    def to_toml(self) -> str:
        """Return the document as TOML; fields that are None are left out."""
        return tomli_w.dumps(self.model_dump(exclude_none=True))

    @classmethod
    def from_toml(cls, text: str) -> Policy:
        """Read a document that `to_toml` or a person wrote.

        Raises:
            PolicyError: Not TOML, or a wrong field.
        """
        try:
            return cls.parse(tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise PolicyError(f"policy: not TOML: {error}") from error

    def diff(self, other: Policy) -> tuple[tuple[str, object, object], ...]:
        """Return (field, value here, value there) for all that differs, versions aside."""
        here, there = _flat(self.model_dump()), _flat(other.model_dump())
        keys = [key for key in {**here, **there} if key != "version"]
        return tuple(
            (key, here.get(key), there.get(key))
            for key in keys
            if here.get(key) != there.get(key)
        )

    def compile(self) -> CompiledPolicy:
        """Return the same document in integer nanoseconds and bytes, for the core."""
        admission = self.admission
        return CompiledPolicy(
            version=self.version,
            default=_compile_model(self.default),
            models={name: _compile_model(part) for name, part in self.models.items()},
            pool_bytes={
                name: int(part.pool_mib * MIB)
                for name, part in self.devices.items()
                if part.pool_mib is not None
            },
            placement=self.placement.policy,
            weights=PlacementWeights(
                **self.placement.model_dump(exclude={"policy"}),
            ),
            queue_items=admission.queue_items,
            queue_bytes=int(admission.queue_mib * MIB),
            aging_ns=ms_to_ns(admission.aging_ms),
            pages_in_flight=admission.pages_in_flight,
            pages_waiting=admission.pages_waiting,
            retry_batches=admission.retry_batches,
        )


def _flat(document: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    flat: dict[str, object] = {}
    for key, value in document.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def _compile_model(part: ModelPolicy) -> ModelRules:
    return ModelRules(
        watermarks=Watermarks(part.low, part.high, ms_to_ns(part.timeout_ms), part.fill),
        priority_class=part.priority_class,
        weight_milli=round(part.weight * 1000),
        slo_ns=ms_to_ns(part.slo_ms),
        deadline_ns=None if part.deadline_ms is None else ms_to_ns(part.deadline_ms),
        max_batch_ns=None if part.max_batch_ms is None else ms_to_ns(part.max_batch_ms),
        pinned=part.pinned,
    )
