"""Turn the recogniser's steps into text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

BLANK = 0


def decode(steps: NDArray[np.float32], characters: Sequence[str]) -> tuple[str, float]:
    """Return the text of one line and how sure the recogniser is of it.

    A class counts once however many steps it lasts; the blank parts equal
    neighbours and is dropped.

    Args:
        steps: float32 (steps, 2): class and its probability.
        characters: One per class, the blank first.

    Returns:
        The text and the mean probability of the steps that began its
        characters, from 0 to 1; 0 for an empty text.
    """
    classes = steps[:, 0].astype(np.int64)
    begins = classes != BLANK
    begins[1:] &= classes[1:] != classes[:-1]
    text = "".join(characters[index] for index in classes[begins])
    return text, float(steps[begins, 1].mean()) if begins.any() else 0.0
