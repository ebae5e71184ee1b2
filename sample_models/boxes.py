"""Turn the detector's probability map into boxes around lines of text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sample_models.rectangles import Points, Rectangle, smallest_rectangle

PIXEL_THRESHOLD = 0.3
BOX_THRESHOLD = 0.5
SMALLEST_SIDE = 3.0
SMALLEST_GROWN_SIDE = 5.0
GROWTH = 1.6  # the map marks the core of a line; the box is grown back by this ratio
MOST_BOXES = 1000  # bounds the work on a noisy page

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Hold the horizontal runs of marked pixels, row by row: `[start, end)` in each."""

    row: Integers
    start: Integers
    end: Integers


def find_boxes(probability: NDArray[np.float32]) -> list[Points]:
    """Return the corners `(4, 2)` of the boxes on a map, in pixels of the map.

    Args:
        probability: float32 (height, width), from 0 to 1.

    Source: M. Liao et al., Real-time scene text detection with differentiable
        binarization, 2020, section 3.4.
    """
    runs = find_runs(_dilated(probability > PIXEL_THRESHOLD))
    if not len(runs.row):
        return []
    labels = label_runs(runs)
    scores = _mean_probability(probability, runs, labels=labels)
    boxes: list[Points] = []
    order = np.argsort(labels, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
    for label, members in enumerate(groups[:MOST_BOXES]):
        if scores[label] >= BOX_THRESHOLD:
            rectangle = _grown_rectangle(runs, members)
            boxes += [] if rectangle is None else [rectangle.corners()]
    return boxes


def find_runs(mask: NDArray[np.bool_]) -> Runs:
    """Return the runs of true pixels in a mask `(height, width)`."""
    height, width = mask.shape
    framed = np.zeros((height, width + 2), np.int8)
    framed[:, 1:-1] = mask
    steps = np.diff(framed, axis=1)
    row, start = np.nonzero(steps == 1)
    return Runs(row, start, np.nonzero(steps == -1)[1])


def label_runs(runs: Runs) -> Integers:
    """Return a component number per run, from 0; touching corners connect."""
    parent = list(range(len(runs.row)))

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    # Runs of the row below that touch this one are neighbours in the list.
    stride = int(runs.end.max()) + 2
    below = (runs.row + 1) * stride
    first = np.searchsorted(runs.row * stride + runs.end, below + runs.start, "left")
    last = np.searchsorted(runs.row * stride + runs.start, below + runs.end, "right")
    for index, (low, high) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
        for other in range(low, high):
            parent[root(other)] = root(index)
    roots = [root(index) for index in range(len(parent))]
    return np.unique(roots, return_inverse=True)[1]


def _dilated(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the mask grown by one pixel each way, so that a turned page gives turned boxes."""
    wide = mask.copy()
    wide[:, 1:] |= mask[:, :-1]
    wide[:, :-1] |= mask[:, 1:]
    grown = wide.copy()
    grown[1:] |= wide[:-1]
    grown[:-1] |= wide[1:]
    return grown


def _mean_probability(
    probability: NDArray[np.float32], runs: Runs, *, labels: Integers
) -> NDArray[np.float64]:
    """Return the mean probability inside each component."""
    total = np.zeros((probability.shape[0], probability.shape[1] + 1))
    np.cumsum(probability, axis=1, out=total[:, 1:])
    sums = total[runs.row, runs.end] - total[runs.row, runs.start]
    return np.bincount(labels, sums) / np.bincount(labels, runs.end - runs.start)


def _grown_rectangle(runs: Runs, members: Integers) -> Rectangle | None:
    """Return the box around a component's runs, None where it is too small for text."""
    rows = np.concatenate((runs.row[members], runs.row[members]))
    columns = np.concatenate((runs.start[members], runs.end[members] - 1))
    rectangle = smallest_rectangle(np.stack((columns, rows), 1).astype(np.float64) + 0.5)
    width, height = rectangle.sides
    if min(width, height) < SMALLEST_SIDE:
        return None
    grown = rectangle.grown(width * height * GROWTH / (2 * (width + height)))
    return grown if min(grown.sides) >= SMALLEST_GROWN_SIDE else None
