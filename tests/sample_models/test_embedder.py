"""Check the optional text embedder: its tokens always, its answers where it is installed."""

from __future__ import annotations

import numpy as np
import pytest

from sample_models import tokens
from tests.sample_models.conftest import Run

NUMBERS = {
    word: number
    for number, word in enumerate(
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "cafe", "pay", "##ment", "##s", "!", "12"]
    )
}


def test_words_are_split_into_their_longest_known_pieces():
    rows = tokens.tokenize(["Café payments!", "12 xyz"], 8, numbers=NUMBERS)
    assert rows.tolist() == [[2, 4, 5, 6, 7, 8, 3, 0], [2, 9, 1, 3, 0, 0, 0, 0]]


def test_a_long_sentence_is_cut_and_still_ends():
    row = tokens.tokenize(["pay " * 50], 6, numbers=NUMBERS)[0]
    assert row.tolist() == [2, 5, 5, 5, 5, 3]


def test_sentences_of_one_meaning_lie_close_at_any_length(run: Run):
    if tokens.model_folder() is None:
        pytest.skip(f"the package {tokens.PACKAGE} is not installed")
    sentences = ["The invoice is due.", "The bill must be paid.", "Cats sleep all day."]
    long, short = (
        run("text_embedder", tokens.tokenize(sentences, length, numbers=tokens.vocabulary()))
        for length in tokens.LENGTHS
    )
    np.testing.assert_allclose(long, short, rtol=0, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(long, axis=1), 1, rtol=0, atol=1e-5)
    likeness = long @ long.T
    assert likeness[0, 1] > 0.4
    assert likeness[0, 2] < 0.2
    assert np.isfinite(run("text_embedder", np.zeros((1, 16), np.int64))).all()
