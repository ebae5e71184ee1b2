"""Rows: values to rows and back, in one place per table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import cast

from sqlalchemy import RowMapping

from engine.decisions import Decision, Kind, Number, Reason
from engine.policy import Policy
from storage.samples import (
    DecisionRecord,
    DeviceSample,
    ModelSample,
    PolicyRecord,
    RunKind,
    RunRecord,
    RunState,
)

Row = dict[str, object]
_DEVICE_FIELDS = tuple(field.name for field in fields(DeviceSample))
_MODEL_FIELDS = tuple(field.name for field in fields(ModelSample))


def device_row(sample: DeviceSample) -> Row:
    """Return a device's second as a row."""
    return {name: getattr(sample, name) for name in _DEVICE_FIELDS}


def model_row(sample: ModelSample) -> Row:
    """Return a model's second as a row."""
    return {name: getattr(sample, name) for name in _MODEL_FIELDS}


def device_sample(row: RowMapping) -> DeviceSample:
    """Read a device's second."""
    return DeviceSample(**{name: row[name] for name in _DEVICE_FIELDS})


def model_sample(row: RowMapping) -> ModelSample:
    """Read a model's second."""
    return ModelSample(**{name: row[name] for name in _MODEL_FIELDS})


def decision_row(record: DecisionRecord) -> Row:
    """Return a decision as a row; its numbers become JSON, in their order."""
    decision = record.decision
    return {
        "at_ms": record.at_ms,
        "serial": decision.serial,
        "at_ns": decision.at_ns,
        "kind": decision.kind.value,
        "reason": decision.reason.value,
        "model": decision.model,
        "device": decision.device,
        "subject": decision.subject,
        "numbers": json.dumps(decision.numbers, default=_plain),
    }


def _plain(number: object) -> object:
    """Return a caller's number of another library, such as NumPy, as Python's own."""
    item = getattr(number, "item", None)
    return item() if callable(item) else str(number)


def decision_record(row: RowMapping) -> DecisionRecord:
    """Read a decision."""
    numbers = cast(Sequence[tuple[str, Number]], json.loads(row["numbers"]))
    decision = Decision(
        serial=row["serial"],
        at_ns=row["at_ns"],
        kind=Kind(row["kind"]),
        reason=Reason(row["reason"]),
        model=row["model"],
        device=row["device"],
        subject=row["subject"],
        numbers=tuple((name, value) for name, value in numbers),
    )
    return DecisionRecord(row["at_ms"], decision)


def policy_row(
    policy: Policy, before: Policy | None, *, author: str, reason: str, at_ms: int
) -> Row:
    """Return a policy version as a row, with its difference to the version before."""
    diff = [] if before is None else before.diff(policy)
    shown = [(field, _shown(old), _shown(new)) for field, old, new in diff]
    return {
        "version": policy.version,
        "at_ms": at_ms,
        "author": author,
        "reason": reason,
        "document": policy.model_dump_json(),
        "diff": json.dumps(shown),
    }


def _shown(value: object) -> str:
    return "none" if value is None else str(value)


def policy_record(row: RowMapping) -> PolicyRecord:
    """Read a policy version."""
    diff = cast(Sequence[Sequence[str]], json.loads(row["diff"]))
    return PolicyRecord(
        version=row["version"],
        at_ms=row["at_ms"],
        author=row["author"],
        reason=row["reason"],
        document=row["document"],
        diff=tuple((field, before, after) for field, before, after in diff),
    )


def run_record(row: RowMapping) -> RunRecord:
    """Read a run."""
    return RunRecord(
        id=row["id"],
        name=row["name"],
        kind=cast(RunKind, row["kind"]),
        started_ms=row["started_ms"],
        ended_ms=row["ended_ms"],
        state=cast(RunState, row["state"]),
        first_policy=row["first_policy"],
        load=row["load"],
        hardware=row["hardware"],
        code_version=row["code_version"],
        summary=cast(Mapping[str, float], json.loads(row["summary"])),
        author=row["author"],
    )
