"""Compare what was read with what was written."""

from __future__ import annotations

import numpy as np


def edit_distance(a: str, b: str) -> int:
    """Return the fewest insertions, deletions and substitutions that turn `a` into `b`."""
    target = np.array([ord(letter) for letter in b], np.int64)
    steps = np.arange(len(b) + 1)
    row = steps.copy()
    for count, letter in enumerate(a, 1):
        ahead = np.minimum(row[1:] + 1, row[:-1] + (target != ord(letter)))
        # Insertions run along the row: a running minimum once their cost is taken out.
        row = np.minimum.accumulate(np.concatenate(([count], ahead)) - steps) + steps
    return int(row[-1])


def character_error_rate(read: str, truth: str) -> float:
    """Return the edit distance per character of the truth; line ends count as spaces.

    Returns:
        0 for a perfect answer; may exceed 1. An empty truth gives 0 for an
        empty answer and 1 for any other.
    """
    read, truth = " ".join(read.split()), " ".join(truth.split())
    if not truth:
        return float(bool(read))
    return edit_distance(read, truth) / len(truth)
