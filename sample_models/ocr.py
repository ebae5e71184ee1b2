"""Read a page: the host code around detector, direction network and recogniser.

Each stage is a pair of pure functions: `prepare_...` turns the page so far
into inputs of the stage's model, `combine_...` takes the outputs into the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sample_models import crops, ctc
from sample_models.boxes import find_boxes
from sample_models.cache import charset
from sample_models.crops import Chunk, Pixels
from sample_models.rectangles import Points, reading_order

TEXT_THRESHOLD = 0.6  # below it a line is taken for a pattern that is no text
LARGEST_SIDE = 20_000

Corner = tuple[float, float]
Call = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Line:
    """Hold one line that was read.

    Attributes:
        text: Never empty.
        score: Mean probability of its characters, 0 to 1.
        box: Corners in pixels of the page, clockwise from the top left.
    """

    text: str
    score: float
    box: tuple[Corner, Corner, Corner, Corner]


@dataclass(frozen=True, slots=True)
class OcrResult:
    """Hold what was read on a page, in reading order."""

    lines: tuple[Line, ...]
    is_upside_down: bool = False

    @property
    def text(self) -> str:
        """Return the lines' text, one line each."""
        return "\n".join(line.text for line in self.lines)


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """Carry a page through the stages; each stage fills in what it found.

    Attributes:
        image: uint8 (height, width, 3), RGB.
        boxes: Corners `(4, 2)` of each line, in reading order.
        crops: The lines' images.
        chunks: The lines as the recogniser takes them, turned upright.
    """

    image: Pixels
    boxes: tuple[Points, ...] = ()
    crops: tuple[Pixels, ...] = ()
    chunks: tuple[Chunk, ...] = ()
    is_upside_down: bool = False
    lines: tuple[Line, ...] = ()


def open_page(image: object) -> Page:
    """Make the first context of the pipeline from a page image.

    Args:
        image: A Pillow image, or uint8 (height, width) grey or
            (height, width, 3) RGB.

    Raises:
        ValueError: It is none of these.
    """
    if isinstance(image, Image.Image):
        image = np.asarray(image.convert("RGB"))
    if not isinstance(image, np.ndarray) or image.dtype != np.uint8:
        found = str(image.dtype) if isinstance(image, np.ndarray) else type(image).__name__
        raise ValueError(f"a page is a Pillow image or a uint8 array, found {found}")
    if image.ndim == 2:
        image = np.repeat(image[:, :, None], 3, 2)
    if image.ndim != 3 or image.shape[2] != 3:
        raise ValueError(f"a page is (height, width) or (height, width, 3), not {image.shape}")
    if not 0 < min(image.shape) <= max(image.shape) <= LARGEST_SIDE:
        raise ValueError(f"a page's sides are 1 to {LARGEST_SIDE}, found {image.shape[:2]}")
    return Page(np.ascontiguousarray(image))


def prepare_detection(context: object) -> tuple[object, ...]:
    """Return one call of the detector: the page on its canvas."""
    return (crops.page_canvas(_page(context).image)[None],)


def combine_detection(context: object, outputs: Sequence[object]) -> object:
    """Find the lines' boxes on the probability map and cut the lines out."""
    page = _page(context)
    height, width = page.image.shape[:2]
    scale = crops.page_scale(page.image)
    found = [
        np.clip(corners / scale, 0, (width, height))
        for corners in find_boxes(_array(outputs[0])[0, 0])
    ]
    boxes = tuple(found[index] for index in reading_order(found))
    picture = Image.fromarray(page.image)
    lines = tuple(crops.cut_line(picture, corners) for corners in boxes)
    return replace(page, boxes=boxes, crops=lines)


def prepare_direction(context: object) -> tuple[object, ...]:
    """Return one call of the direction network with views of all lines; none without lines."""
    page = _page(context)
    if not page.crops:
        return ()
    return (np.stack([view for crop in page.crops for view in crops.direction_windows(crop)]),)


def combine_direction(context: object, outputs: Sequence[object]) -> object:
    """Turn the lines upright by a vote of all views and shape them for the recogniser.

    A page is upside down as a whole: single lines are too often mistaken.
    """
    page = _page(context)
    if not outputs:
        return page
    votes = _array(outputs[0])
    is_upside_down = bool((votes[:, 1] - votes[:, 0]).sum() > 0)
    boxes, lines = page.boxes, page.crops
    if is_upside_down:
        boxes, lines = boxes[::-1], tuple(crop[::-1, ::-1] for crop in lines[::-1])
    chunks = crops.chunk_lines([np.ascontiguousarray(crop) for crop in lines])
    return replace(page, boxes=boxes, chunks=chunks, crops=(), is_upside_down=is_upside_down)


def prepare_recognition(context: object) -> tuple[object, ...]:
    """Return one call of the recogniser per width that occurs, narrowest first."""
    chunks = _page(context).chunks
    return tuple(
        np.stack(
            [
                crops.padded(chunks[index].image, width, height=crops.LINE_HEIGHT)
                for index in indices
            ]
        )
        for width, indices in _by_width(chunks)
    )


def combine_recognition(context: object, outputs: Sequence[object]) -> object:
    """Turn steps into text, join the pieces of long lines, drop what is no text."""
    page = _page(context)
    pieces: dict[int, tuple[str, float]] = {}
    for (_, indices), output in zip(_by_width(page.chunks), outputs, strict=True):
        for index, steps in zip(indices, _array(output), strict=True):
            pieces[index] = ctc.decode(steps, charset())
    lines = [_line(page, index, pieces=pieces) for index in range(len(page.boxes))]
    kept = tuple(line for line in lines if line.text and line.score >= TEXT_THRESHOLD)
    return replace(page, lines=kept, chunks=())


def close_page(context: object) -> OcrResult:
    """Return what was read, from the last context."""
    page = _page(context)
    return OcrResult(page.lines, page.is_upside_down)


def _by_width(chunks: Sequence[Chunk]) -> list[tuple[int, list[int]]]:
    """Return the indices of the chunks per width, narrowest first, in order."""
    widths = sorted({chunk.width for chunk in chunks})
    return [(w, [i for i, chunk in enumerate(chunks) if chunk.width == w]) for w in widths]


def _line(page: Page, line: int, *, pieces: dict[int, tuple[str, float]]) -> Line:
    """Join the pieces of one line; its score weighs them by their characters."""
    text, score_sum = "", 0.0
    for index, chunk in enumerate(page.chunks):
        if chunk.line == line:
            piece, score = pieces[index]
            gap = " " if chunk.follows_gap and text and piece else ""
            text = text.rstrip() + gap + piece.lstrip() if gap else text + piece
            score_sum += score * len(piece)
    count = sum(len(pieces[i][0]) for i, chunk in enumerate(page.chunks) if chunk.line == line)
    box = page.boxes[line].tolist()
    corners = tuple((float(x), float(y)) for x, y in box)
    assert len(corners) == 4
    return Line(text.strip(), score_sum / max(1, count), corners)


def _page(context: object) -> Page:
    assert isinstance(context, Page), f"a stage got {type(context).__name__}"
    return context


def _array(output: object) -> NDArray[np.float32]:
    return np.asarray(output, np.float32)
