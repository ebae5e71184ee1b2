"""Give each sample model real inputs by seed and judge its answers."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.spec import Sample
from sample_models import crops, ctc, pages, tokens
from sample_models.boxes import find_boxes
from sample_models.cache import charset
from sample_models.score import character_error_rate

HELD_OUT = Path(__file__).parent / "weights" / "digits_held_out.npz"
LARGEST_INK = 16.0
RANKER_WIDTH = 2048
LINE_LOOK = pages.Look(font_px=24, noise=6.0)
LINE_MARGIN = pages.MARGIN - 6  # kept around a line, as the detector's boxes do


def page_sample(seed: int) -> Sample:
    """Return a page image, uint8 (height, width, 3), and its text."""
    page = pages.sample_page(seed)
    return Sample(page.image, page.text)


def detector_sample(seed: int) -> Sample:
    """Return a page on its canvas, float32 (1, 3, 768, 768), and how many lines it has."""
    page = pages.sample_page(seed)
    return Sample(crops.page_canvas(page.image)[None], len(page.text.splitlines()))


def direction_sample(seed: int) -> Sample:
    """Return a line, float32 (1, 3, 48, 192), upright or not, and 1 if it is upside down."""
    image, _ = line_image(seed)
    is_upside_down = seed % 2
    image = np.ascontiguousarray(image[::-1, ::-1]) if is_upside_down else image
    return Sample(crops.direction_windows(image)[0][None], np.array([is_upside_down]))


def recognizer_sample(seed: int) -> Sample:
    """Return a line, float32 (1, 3, 48, its bucket's width), and its text."""
    image, text = line_image(seed)
    chunk = crops.chunk_lines([image])[0]
    return Sample(crops.padded(chunk.image, chunk.width, height=crops.LINE_HEIGHT)[None], text)


def digit_sample(seed: int) -> Sample:
    """Return a handwritten digit, float32 (1, 1, 8, 8), and which one it is."""
    images, digits = held_out_digits()
    index = seed % len(digits)
    return Sample(images[index : index + 1], digits[index : index + 1])


def ranker_sample(seed: int) -> Sample:
    """Return a random row, float32 (1, 2048), from 0 to 1; it has no right answer."""
    return Sample(np.random.default_rng(seed).random((1, RANKER_WIDTH), np.float32))


def embedder_sample(seed: int) -> Sample:
    """Return a line of an invoice as tokens, int64 (1, 64); it has no right answer."""
    text = random.Random(seed).choice(pages.invoice_lines(random.Random(seed)))
    return Sample(tokens.tokenize([text], tokens.LENGTHS[0], numbers=tokens.vocabulary()))


def held_out_digits() -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return the digits that were not trained on: float32 (360, 1, 8, 8) and int64 (360,)."""
    with np.load(HELD_OUT, allow_pickle=False) as stored:
        images = stored["images"].astype(np.float32) / np.float32(LARGEST_INK)
        return images[:, None], stored["digits"].astype(np.int64)


def line_image(seed: int) -> tuple[NDArray[np.uint8], str]:
    """Return one line of an invoice, uint8 (height, width, 3), and its text.

    It is short enough for one piece at the recogniser's height.
    """
    chance = random.Random(seed)
    text = chance.choice(pages.invoice_lines(chance)[1:])
    image = pages.draw_page([text], LINE_LOOK, noise_seed=chance.getrandbits(32))
    return image[LINE_MARGIN:-LINE_MARGIN, LINE_MARGIN:-LINE_MARGIN], text


def page_score(output: object, truth: object) -> dict[str, float]:
    """Return the character error rate of a page that was read."""
    text = getattr(output, "text", None)
    assert isinstance(text, str) and isinstance(truth, str)
    return {"cer": character_error_rate(text, truth)}


def detector_score(output: object, truth: object) -> dict[str, float]:
    """Return the share of the lines that were found, at most 1."""
    assert isinstance(truth, int)
    found = len(find_boxes(np.asarray(output)[0, 0]))
    return {"found_share": min(1.0, found / truth)}


def recognizer_score(output: object, truth: object) -> dict[str, float]:
    """Return the character error rate of one line."""
    assert isinstance(truth, str)
    return {"cer": character_error_rate(ctc.decode(np.asarray(output)[0], charset())[0], truth)}


def class_score(output: object, truth: object) -> dict[str, float]:
    """Return the share of items whose most likely class is the right one."""
    return {"accuracy": float((np.asarray(output).argmax(1) == np.asarray(truth)).mean())}
