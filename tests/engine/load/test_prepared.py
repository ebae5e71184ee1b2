"""Prepared inputs: samples joined to requests of many items, each piece scored by itself."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import InputError
from engine.load.prepared import prepare
from engine.spec import Sample


def rows(seed: int) -> Sample:
    """Return one row of two shapes in turn, whose truth is its seed."""
    return Sample(np.full((1, 2 + seed % 2), seed), seed)


def test_a_request_of_one_item_is_the_sample_itself():
    first, second = prepare(lambda seed: Sample(f"page {seed}", seed), items=1, seed=5, count=2)
    assert (first.payload, second.payload) == ("page 5", "page 6")
    assert first.scores("out", lambda _, truth: {"seen": float(truth == 5)}) == {"seen": 1}


def test_samples_of_one_shape_are_joined_and_scored_one_by_one():
    (found,) = prepare(rows, items=3, seed=4, count=1)
    assert np.asarray(found.payload).tolist() == [[4, 4], [6, 6], [8, 8]]
    output = np.array([[4], [6], [9]])
    score = found.scores(output, lambda out, truth: {"right": float(out[0, 0] == truth)})
    assert score == {"right": pytest.approx(2 / 3)}


def test_targets_that_take_no_arrays_refuse_many_items():
    with pytest.raises(InputError, match="items: found 2, wanted 1"):
        list(prepare(lambda _: Sample("text"), items=2, seed=0))


def test_samples_that_are_too_large_to_be_joined_are_refused():
    with pytest.raises(InputError, match="items: found 2"):
        list(prepare(lambda _: Sample(np.zeros((3, 1))), items=2, seed=0))
