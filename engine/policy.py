"""The policy: the one document that holds all that an operator can edit."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping

import tomli_w
from pydantic import BaseModel, Field, ValidationError

from engine.errors import PolicyError
from engine.policy_parts import (
    PLACEMENTS,
    AdmissionPolicy,
    DevicePolicy,
    MemoryPolicy,
    ModelPolicy,
    Part,
    PlacementPolicy,
    compile_memory,
    compile_model,
)
from engine.reserve import nccl_bytes
from engine.rules import CompiledPolicy, PlacementWeights
from engine.units import MIB, ms_to_ns

__all__ = [
    "PLACEMENTS",
    "AdmissionPolicy",
    "DevicePolicy",
    "MemoryPolicy",
    "ModelPolicy",
    "PlacementPolicy",
    "Policy",
]


class Policy(Part):
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
            default=compile_model(self.default),
            models={name: compile_model(part) for name, part in self.models.items()},
            pool_bytes={
                name: int(part.pool_mib * MIB)
                for name, part in self.devices.items()
                if part.pool_mib is not None
            },
            reserve_bytes={
                name: int(part.reserve_mib * MIB)
                for name, part in self.devices.items()
                if part.reserve_mib is not None
            },
            nccl_bytes={
                name: nccl_bytes(part.nccl_connections, part.nccl_channels)
                for name, part in self.devices.items()
            },
            memory=compile_memory(self.memory),
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
