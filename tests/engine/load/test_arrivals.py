"""Arrivals: rates, spread and popularity are as stated, and follow from the seed alone."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from engine.load.arrivals import (
    ArrivalKind,
    arrivals_ns,
    draw_models,
    endless_gaps,
    zipf_shares,
)

SECOND = 1_000_000_000


def test_constant_arrivals_are_evenly_spaced():
    found = arrivals_ns("constant", rate_hz=4, until_ns=SECOND + 1, seed=1)
    assert found.tolist() == [250_000_000, 500_000_000, 750_000_000, 1_000_000_000]


@pytest.mark.parametrize(
    ("kind", "cv", "tolerance"),
    [("poisson", 1.0, 0.01), ("gamma", 4.0, 0.04), ("gamma", 0.5, 0.01)],
)
def test_arrivals_have_the_stated_rate_and_spread(
    kind: ArrivalKind, cv: float, tolerance: float
):
    found = arrivals_ns(kind, rate_hz=1000, until_ns=300 * SECOND, seed=11, cv=cv)
    gaps = np.diff(found)
    assert len(found) / 300 == pytest.approx(1000, rel=tolerance)
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=tolerance)
    assert (gaps >= 0).all() and found[0] >= 0 and found[-1] < 300 * SECOND


def test_the_same_seed_gives_the_same_arrivals_and_another_seed_others():
    first, again, other = (
        arrivals_ns("gamma", rate_hz=100, until_ns=SECOND, seed=seed, cv=2)
        for seed in (3, 3, 4)
    )
    assert first.tolist() == again.tolist() != other.tolist()


def test_a_higher_rate_shortens_the_same_gaps():
    slow = arrivals_ns("poisson", rate_hz=100, until_ns=SECOND, seed=5)
    fast = arrivals_ns("poisson", rate_hz=200, until_ns=SECOND, seed=5)
    assert np.abs(fast[: len(slow)] * 2 - slow).max() <= 2


def test_endless_gaps_have_mean_one_and_do_not_depend_on_how_many_are_taken():
    gaps = list(islice(endless_gaps("poisson", seed=9), 50_000))
    assert sum(gaps) / len(gaps) == pytest.approx(1, rel=0.02)
    assert gaps[:3000] == list(islice(endless_gaps("poisson", seed=9), 3000))


def test_zipf_shares_fall_with_the_rank_and_sum_to_one():
    shares = zipf_shares(100, 0.9)
    assert shares.sum() == pytest.approx(1)
    assert shares[0] / shares[9] == pytest.approx(10**0.9)
    assert zipf_shares(4, 0).tolist() == [0.25] * 4


def test_models_are_drawn_by_their_shares():
    drawn = draw_models(np.array([0.5, 0.3, 0.2]), count=100_000, seed=2)
    counts = np.bincount(drawn, minlength=3) / len(drawn)
    assert counts.tolist() == pytest.approx([0.5, 0.3, 0.2], abs=0.01)
