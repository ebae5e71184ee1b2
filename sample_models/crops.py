"""Cut images of lines out of a page and shape images for the three text networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sample_models.rectangles import Points

CANVAS = 768
LINE_HEIGHT = 48
DIRECTION_WIDTH = 192
WIDTHS = (320, 480, 640, 960, 1280)
TALL = 1.5  # a crop this much higher than wide holds a line that runs upwards
GAP_CONTRAST = 0.3  # of the contrast of a line's ink: below it a column is empty
WORD_GAP = 7  # empty columns that part words; letters stand closer
LONGEST_RATIO = 100  # a line longer than this many heights is squeezed: bounds its chunks

Pixels = NDArray[np.uint8]
Tensor32 = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Hold a piece of a line, 48 pixels high, that fits the recogniser.

    Attributes:
        line: Index of the line.
        image: uint8 (48, width, 3), RGB.
        width: Width of its bucket.
        follows_gap: A space parts it from the piece before.
    """

    line: int
    image: Pixels
    width: int
    follows_gap: bool


def page_scale(image: Pixels) -> float:
    """Return by how much a page is scaled so that its long side fills the canvas."""
    height, width = image.shape[:2]
    return CANVAS / max(height, width)


def page_canvas(image: Pixels) -> Tensor32:
    """Return the page on the detector's canvas, `(3, 768, 768)`, at its top left."""
    height, width = (max(1, round(side * page_scale(image))) for side in image.shape[:2])
    return padded(resized(image, width, height=height), CANVAS, height=CANVAS)


def resized(image: Pixels, width: int, *, height: int) -> Pixels:
    """Return the image at another size."""
    picture = Image.fromarray(image).resize((width, height), Image.Resampling.BILINEAR)
    return np.asarray(picture)


def padded(image: Pixels, width: int, *, height: int) -> Tensor32:
    """Return the image as a network wants it, zeros to its right and below.

    Args:
        image: uint8 (at most height, at most width, 3), RGB.

    Returns:
        float32 (3, height, width), BGR in [-1, 1].
    """
    canvas = np.zeros((3, height, width), np.float32)
    values = image[:, :, ::-1].transpose(2, 0, 1)
    canvas[:, : image.shape[0], : image.shape[1]] = values / np.float32(127.5) - np.float32(1)
    return canvas


def cut_line(page: Image.Image, corners: Points) -> Pixels:
    """Return the part of a page inside a box, straightened; a line that runs up is laid down.

    Args:
        page: RGB.
        corners: `(4, 2)`, clockwise from the top left, in pixels of the page.
    """
    top_left, top_right, bottom_right, bottom_left = corners
    width = max(_distance(top_left, top_right), _distance(bottom_left, bottom_right))
    height = max(_distance(top_left, bottom_left), _distance(top_right, bottom_right))
    size = max(1, round(width)), max(1, round(height))
    quad = (*top_left, *bottom_left, *bottom_right, *top_right)
    picture = page.transform(
        size, Image.Transform.QUAD, [float(side) for side in quad], Image.Resampling.BICUBIC
    )
    pixels = np.asarray(picture)
    return np.rot90(pixels).copy() if size[1] >= TALL * size[0] else pixels


def _distance(a: Points, b: Points) -> float:
    return float(np.hypot(*(a - b)))


def direction_windows(crop: Pixels) -> list[Tensor32]:
    """Return views of a line as the direction network wants them, each `(3, 48, 192)`.

    A line that is too wide shows its start and its end: squeezed into the
    width it is mistaken about twice as often.
    """
    image = resized(crop, _line_width(crop), height=LINE_HEIGHT)
    ends = (
        [image] if image.shape[1] <= DIRECTION_WIDTH else [image, image[:, -DIRECTION_WIDTH:]]
    )
    return [
        padded(end[:, :DIRECTION_WIDTH], DIRECTION_WIDTH, height=LINE_HEIGHT) for end in ends
    ]


def chunk_lines(crops: Sequence[Pixels]) -> tuple[Chunk, ...]:
    """Return the lines at the recogniser's height, the long ones in pieces, in order."""
    return tuple(
        chunk for index, crop in enumerate(crops) for chunk in _chunk_line(index, crop)
    )


def _chunk_line(index: int, crop: Pixels) -> list[Chunk]:
    image = resized(crop, _line_width(crop), height=LINE_HEIGHT)
    cuts = find_cuts(image)
    starts = [(0, False), *cuts]
    ends = [start for start, _ in cuts] + [image.shape[1]]
    return [
        Chunk(index, image[:, start:end], bucket_width(end - start), follows_gap)
        for (start, follows_gap), end in zip(starts, ends, strict=True)
    ]


def _line_width(crop: Pixels) -> int:
    ratio = min(LONGEST_RATIO, crop.shape[1] / crop.shape[0])
    return max(1, ceil(LINE_HEIGHT * ratio))


def bucket_width(width: int) -> int:
    """Return the narrowest bucket that holds `width` columns, at most 1280."""
    return next(bucket for bucket in WIDTHS if width <= bucket)


def find_cuts(image: Pixels) -> list[tuple[int, bool]]:
    """Return where to cut a line that is wider than the widest bucket.

    Each cut is in the widest empty stretch of the second half of what fits,
    else where the least ink is.

    Args:
        image: uint8 (48, width, 3).

    Returns:
        Column of each cut and whether it parts two words.
    """
    contrast = np.ptp(image.mean(2), axis=0)
    low, high = np.percentile(contrast, (5, 95))
    empty = contrast <= low + GAP_CONTRAST * (high - low)
    cuts: list[tuple[int, bool]] = []
    start = 0
    while image.shape[1] - start > WIDTHS[-1]:
        window = slice(start + WIDTHS[-1] // 2, start + WIDTHS[-1])
        column, gap = _widest_gap(empty[window])
        if gap == 0:
            column = int(np.argmin(contrast[window]))
        start = window.start + column
        cuts.append((start, gap >= WORD_GAP))
    return cuts


def _widest_gap(empty: NDArray[np.bool_]) -> tuple[int, int]:
    """Return the middle and the length of the longest true stretch, the last of equals."""
    steps = np.diff(np.concatenate(([0], empty.astype(np.int8), [0])))
    starts, ends = np.flatnonzero(steps == 1), np.flatnonzero(steps == -1)
    if not len(starts):
        return 0, 0
    lengths = ends - starts
    best = len(lengths) - 1 - int(np.argmax(lengths[::-1]))
    return int(starts[best] + ends[best]) // 2, int(lengths[best])
