"""Inputs: what a caller passes is checked once per kind, and then recognised at a glance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, cast

import numpy as np

from engine.errors import InputError
from engine.policy import Policy
from engine.ports import Payload
from engine.spec import Bucket, LaneKey, ModelSpec
from engine.units import ms_to_ns


class Tensor(Payload, Protocol):
    """Be what a caller may pass: a numpy array or a torch tensor `(items, *shape)`."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the number of items, then the shape of one."""
        ...

    @property
    def dtype(self) -> object:
        """Return the type of one number."""
        ...


class Terms(NamedTuple):
    """Hold what is the same for all inputs of a kind: lane, size, the policy's defaults.

    Attributes:
        shape: Of one item.
        dtype: The very object, so that `is` recognises it.
        deadline_ns: From submission; None: no deadline.
    """

    shape: tuple[int, ...]
    dtype: object
    lane: LaneKey
    item_bytes: int
    priority_class: int
    deadline_ns: int | None


class Inputs:
    """Recognise the inputs of all models.

    Most callers of a model send the same kind again and again: the last one
    seen is compared first, by two cheap comparisons.
    """

    __slots__ = ("_last", "_policy", "specs")

    def __init__(self, policy: Policy) -> None:
        """Know no model yet."""
        self.specs: dict[str, ModelSpec] = {}
        self._policy = policy
        self._last: dict[str, Terms] = {}

    def follow(self, policy: Policy) -> None:
        """Take classes and deadlines from this policy from now on."""
        self._policy = policy
        self._last = {}

    def terms(self, model: str, x: object) -> Terms:
        """Return the terms of an input.

        Raises:
            InputError: Unknown model, not an array or tensor, no item, or a
                shape or dtype that the model does not accept.
        """
        terms = self._last.get(model)
        tensor: Tensor = x  # type: ignore[assignment]  # found out by trying, once per request
        try:
            shape = tensor.shape
            if terms is None or tensor.dtype is not terms.dtype or shape[1:] != terms.shape:
                terms = self._find(model, tensor)
        except AttributeError as error:
            if model not in self.specs:
                raise InputError(self.unknown(model)) from error
            raise InputError(
                f"{model}: wanted an array or tensor, found {type(x).__name__}"
            ) from error
        if not shape[0]:
            raise InputError(f"{model}: the input has no items; its first axis is 0")
        return terms

    def unknown(self, model: str) -> str:
        """Return a sentence that says which models there are."""
        known = ", ".join(sorted(self.specs)) or "none yet"
        return f"{model}: no such model; there are {known}"

    def _find(self, model: str, tensor: Tensor) -> Terms:
        spec = self.specs.get(model)
        if spec is None:
            raise InputError(self.unknown(model))
        shape, dtype = tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")
        for bucket in spec.buckets:
            if shape and shape[1:] == bucket.shape and dtype == bucket.dtype:
                terms = self._make(model, bucket, dtype=tensor.dtype)
                self._last[model] = terms
                return terms
        accepted = " or ".join(_describe(bucket) for bucket in spec.buckets)
        raise InputError(f"{model}: found {dtype} {shape}, wanted {accepted}")

    def _make(self, model: str, bucket: Bucket, *, dtype: object) -> Terms:
        part = self._policy.model(model)
        deadline_ns = None if part.deadline_ms is None else ms_to_ns(part.deadline_ms)
        return Terms(
            bucket.shape,
            dtype,
            LaneKey(model, bucket.shape, bucket.dtype),
            bucket.item_bytes,
            part.priority_class,
            deadline_ns,
        )


def check_models(specs: Mapping[str, ModelSpec], name: str) -> None:
    """Refuse a second model of a name.

    Raises:
        InputError: The name is taken.
    """
    if name in specs:
        raise InputError(f"{name}: a model of that name is there already; rename one")


def _describe(bucket: Bucket) -> str:
    return f"{bucket.dtype} (items, {', '.join(map(str, bucket.shape))})"


def join(outputs: Sequence[Payload]) -> Payload:
    """Put the outputs of a split request together, in order."""
    first = outputs[0]
    if isinstance(first, np.ndarray):
        return cast(Payload, np.concatenate(cast(Sequence[np.ndarray], outputs)))
    joiner = getattr(first, "new_empty", None)
    assert joiner is not None, "outputs are arrays or tensors"
    rows = sum(len(one) for one in outputs)
    joined = joiner((rows, *cast(Tensor, first).shape[1:]))
    start = 0
    for one in outputs:
        joined[start : start + len(one)] = one
        start += len(one)
    return cast(Payload, joined)
