"""Read real and rendered pages from image to text."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from sample_models import PIPELINES, ocr, pages
from sample_models.cache import FETCH
from sample_models.score import character_error_rate
from tests.sample_models.conftest import Read


def test_the_photograph_is_read_with_at_most_one_wrong_character_in_a_hundred(read: Read):
    page = pages.photograph()
    if page is None:
        pytest.skip(f"photograph missing: run `{FETCH}`")
    result = read(page.image)
    assert not result.is_upside_down
    assert len(result.lines) == 7
    assert character_error_rate(result.text, page.text) <= 0.01


def test_the_photograph_is_read_upside_down(read: Read):
    page = pages.photograph()
    if page is None:
        pytest.skip(f"photograph missing: run `{FETCH}`")
    result = read(np.ascontiguousarray(page.image[::-1, ::-1]))
    assert result.is_upside_down
    assert character_error_rate(result.text, page.text) <= 0.03


@pytest.mark.parametrize(
    "look",
    [
        pages.Look(font_px=22),
        pages.Look(font_px=16),
        pages.Look(font_px=22, turn_degrees=4, noise=6),
        pages.Look(font_px=22, turn_degrees=-9, noise=12),
        pages.Look(font_px=20, turn_degrees=3, is_upside_down=True),
    ],
    ids=["clean", "small", "tilted", "tilted and noisy", "upside down"],
)
def test_a_rendered_invoice_is_read(read: Read, look: pages.Look):
    page = pages.invoice(3, look)
    result = read(page.image)
    assert result.is_upside_down == look.is_upside_down
    assert character_error_rate(result.text, page.text) <= 0.03


def test_boxes_lie_on_the_page_and_follow_its_lines(read: Read):
    page = pages.invoice(3, pages.Look(font_px=22))
    result = read(page.image)
    height, width = page.image.shape[:2]
    corners = np.array([line.box for line in result.lines])
    assert corners.min() >= 0
    assert (corners[:, :, 0] <= width).all() and (corners[:, :, 1] <= height).all()
    assert (np.diff(corners[:, 0, 1]) > 0).all()
    assert all(0.6 <= line.score <= 1 for line in result.lines)


@pytest.mark.parametrize(
    "image",
    [
        np.full((300, 400, 3), 255, np.uint8),
        np.zeros((40, 700), np.uint8),
        np.full((1, 1, 3), 90, np.uint8),
        np.full((1, 900, 3), 90, np.uint8),
    ],
    ids=["white", "black and grey", "one pixel", "one row"],
)
def test_a_page_without_text_gives_no_lines(read: Read, image: object):
    assert read(image) == ocr.OcrResult(())


def test_a_line_longer_than_the_widest_bucket_is_read_in_pieces(read: Read):
    text = (
        "Please note that this line is much longer than those which usually stand on a page, "
        "so that it needs two pieces"
    )
    image = pages.draw_page([text], pages.Look(font_px=28), noise_seed=0)
    result = read(image)
    (line,) = result.lines
    left, right = line.box[0][0], line.box[1][0]
    top, bottom = line.box[0][1], line.box[3][1]
    assert 48 * (right - left) / (bottom - top) > 1280
    assert character_error_rate(result.text, text) <= 0.03


def test_a_page_may_be_a_picture_or_grey():
    grey = np.arange(12, dtype=np.uint8).reshape(3, 4)
    expected = np.repeat(grey[:, :, None], 3, 2)
    for image in (grey, expected, Image.fromarray(grey), Image.fromarray(expected)):
        np.testing.assert_array_equal(ocr.open_page(image).image, expected)


@pytest.mark.parametrize(
    ("image", "found"),
    [
        ("page.png", "found str"),
        (np.zeros((4, 4)), "found float64"),
        (np.zeros((4, 4, 4), np.uint8), r"not \(4, 4, 4\)"),
        (np.zeros((0, 4), np.uint8), r"found \(0, 4\)"),
        (np.zeros((1, 20_001), np.uint8), r"found \(1, 20001\)"),
    ],
)
def test_what_is_no_page_is_refused_with_what_was_found(image: object, found: str):
    with pytest.raises(ValueError, match=found):
        ocr.open_page(image)


def test_a_page_without_boxes_asks_nothing_of_the_later_models():
    detect, turn, recognise = PIPELINES[0].stages
    page = ocr.open_page(np.zeros((30, 40, 3), np.uint8))
    (canvas,) = detect.prepare(page)
    assert canvas.shape == (1, 3, 768, 768) and canvas.dtype == np.float32
    context = detect.combine(page, (np.zeros((1, 1, 768, 768), np.float32),))
    for stage in (turn, recognise):
        assert stage.prepare(context) == ()
        context = stage.combine(context, ())
    assert PIPELINES[0].finish(context) == ocr.OcrResult(())


def test_lines_of_one_pixel_pass_through_every_stage():
    _, turn, recognise = PIPELINES[0].stages
    corners = np.array([[3, 3], [4, 3], [4, 4], [3, 4]], np.float64)
    page = ocr.open_page(np.zeros((30, 40, 3), np.uint8))
    page = ocr.Page(page.image, (corners,), (page.image[:1, :1],))
    (call,) = turn.prepare(page)
    page = turn.combine(page, (np.array([[0.2, 0.8]], np.float32),))
    assert page.is_upside_down
    (call,) = recognise.prepare(page)
    assert call.shape == (1, 3, 48, 320)
    page = recognise.combine(page, (np.zeros((1, 40, 2), np.float32),))
    assert page.lines == ()
