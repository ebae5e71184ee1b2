"""Arrivals: when requests come and for which model, in bulk, from a seed."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from engine.units import NS_PER_S

ArrivalKind = Literal["constant", "poisson", "gamma"]
CHUNK = 1024


class Stream(IntEnum):
    """Name the independent streams of chance that one seed gives."""

    GAPS = 0
    MODELS = 1


def draw_gaps(
    chance: np.random.Generator, kind: ArrivalKind, *, count: int, cv: float = 1.0
) -> NDArray[np.float64]:
    """Draw gaps between arrivals with mean 1.

    Gamma gaps of a coefficient of variation above 1 come in bursts: shape
    1 / cv², scale cv².

    Args:
        count: How many.
        cv: Standard deviation over mean of the gaps, gamma only; more than 0.

    Returns:
        float64 (count,)
    """
    if kind == "constant":
        return np.ones(count)
    if kind == "poisson":
        return chance.standard_exponential(count)
    return chance.standard_gamma(1 / cv**2, count) * cv**2


def arrivals_ns(
    kind: ArrivalKind, *, rate_hz: float, until_ns: int, seed: int, cv: float = 1.0
) -> NDArray[np.int64]:
    """Return the instants of a renewal process from 0 to an end, in order.

    The gaps of a seed are the same at every rate, only shorter or longer, so
    that two rates are compared under the same chance.

    Args:
        until_ns: Exclusive end.

    Returns:
        int64 (arrivals,), rounded to nanoseconds.
    """
    chance = _generator(seed, Stream.GAPS)
    mean_ns = NS_PER_S / rate_hz
    expected = until_ns / mean_ns
    step = int(expected + 4 * max(1.0, cv) * expected**0.5) + 16
    parts: list[NDArray[np.float64]] = []
    last_ns = 0.0
    while last_ns < until_ns:
        gaps = draw_gaps(chance, kind, count=step, cv=cv)
        gaps *= mean_ns
        gaps[0] += last_ns
        parts.append(np.cumsum(gaps))
        last_ns = float(parts[-1][-1])
    instants = np.rint(np.concatenate(parts)).astype(np.int64)
    return instants[: np.searchsorted(instants, until_ns)]


def endless_gaps(kind: ArrivalKind, *, seed: int, cv: float = 1.0) -> Iterator[float]:
    """Yield gaps with mean 1 for as long as somebody asks."""
    chance = _generator(seed, Stream.GAPS)
    while True:
        yield from draw_gaps(chance, kind, count=CHUNK, cv=cv).tolist()


def zipf_shares(count: int, exponent: float) -> NDArray[np.float64]:
    """Return the share of each rank, proportional to 1 / rank^exponent; 0 means equal shares.

    Returns:
        float64 (count,), with sum 1.
    """
    weights = np.arange(1, count + 1, dtype=np.float64) ** -exponent
    total: float = weights.sum()
    return weights / total


def draw_models(shares: NDArray[np.float64], *, count: int, seed: int) -> NDArray[np.int64]:
    """Draw the model of every arrival by its share.

    Args:
        shares: float64 (models,), with sum 1.

    Returns:
        int64 (count,): indices of models.
    """
    chance = _generator(seed, Stream.MODELS)
    edges = np.cumsum(shares)
    edges[-1] = 1.0
    return np.searchsorted(edges, chance.random(count), side="right")


def _generator(seed: int, stream: Stream) -> np.random.Generator:
    """Make the one source of chance of a stream; nowhere else is one made."""
    return np.random.Generator(np.random.PCG64([seed, stream]))
