"""Prepared: real inputs made before the load starts, so that making them costs no slip."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from engine.errors import InputError
from engine.spec import Sample

POOL = 32
TRIES_PER_ITEM = 16
"""Samples looked at for one that has the first one's shape, where a model has several."""

Inputs = Callable[[int], Sample]
Score = Callable[[object, object], Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Prepared:
    """Hold one request's payload and the samples that it was joined from.

    Attributes:
        pieces: (first item, end, truth) of each sample; none: the whole is one sample.
    """

    payload: object
    truth: object
    pieces: tuple[tuple[int, int, object], ...] = ()

    def scores(self, output: object, score: Score) -> Mapping[str, float]:
        """Return the mean of the samples' scores, by name."""
        if not self.pieces:
            return score(output, self.truth)
        rows = cast(NDArray[np.generic], output)
        sums: dict[str, float] = {}
        for first, end, truth in self.pieces:
            for name, value in score(rows[first:end], truth).items():
                sums[name] = sums.get(name, 0.0) + value
        return {name: total / len(self.pieces) for name, total in sums.items()}


def prepare(inputs: Inputs, *, items: int, seed: int, count: int = POOL) -> Iterator[Prepared]:
    """Yield requests of that many items, made from one sample or from several.

    Args:
        inputs: Seed to a sample; for `items` above 1 its payload is an array
            `(items, ...)`.
        count: How many requests; a load goes round them.

    Raises:
        InputError: The samples cannot be joined to so many items.
    """
    for index in range(count):
        first_seed = seed + index * items
        if items == 1:
            sample = inputs(first_seed)
            yield Prepared(sample.payload, sample.truth)
        else:
            yield _join(inputs, items=items, seed=first_seed)


def _join(inputs: Inputs, *, items: int, seed: int) -> Prepared:
    arrays: list[NDArray[np.generic]] = []
    pieces: list[tuple[int, int, object]] = []
    filled = 0
    for offset in range(items * TRIES_PER_ITEM):
        sample = inputs(seed + offset)
        array = sample.payload
        if not isinstance(array, np.ndarray) or not len(array):
            raise InputError(f"items: found {items}, wanted 1: this target takes no arrays")
        if arrays and array.shape[1:] != arrays[0].shape[1:]:
            continue
        if filled + len(array) > items:
            continue
        arrays.append(array)
        pieces.append((filled, filled + len(array), sample.truth))
        filled += len(array)
        if filled == items:
            return Prepared(np.concatenate(arrays), None, tuple(pieces))
    raise InputError(f"items: found {items}, wanted fewer: samples of one shape are too rare")
