"""Check boxes, crops, decoding and scores without any network."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from sample_models import boxes, crops, ctc, pages, rectangles, score

POINTS = st.lists(
    st.tuples(st.integers(-50, 50), st.integers(-50, 50)), min_size=1, max_size=30
)


def test_components_touch_at_corners_and_no_further():
    rows = ["##....#", "..#...#", "..#.#..", "....#.."]
    mask = np.array([[letter == "#" for letter in row] for row in rows])
    runs = boxes.find_runs(mask)
    labels = boxes.label_runs(runs)
    assert list(zip(runs.row, runs.start, runs.end, strict=True)) == [
        (0, 0, 2), (0, 6, 7), (1, 2, 3), (1, 6, 7), (2, 2, 3), (2, 4, 5), (3, 4, 5)
    ]  # fmt: skip
    assert labels[[0, 2, 4]].tolist() == [labels[0]] * 3
    assert labels[1] == labels[3] != labels[0]
    assert labels[5] == labels[6] and labels[5] not in (labels[0], labels[1])


@given(st.lists(st.lists(st.booleans(), min_size=7, max_size=7), min_size=1, max_size=9))
def test_components_are_those_of_a_flood_fill(rows: list[list[bool]]):
    mask = np.array(rows)
    runs = boxes.find_runs(mask)
    labels = boxes.label_runs(runs) if len(runs.row) else np.array([], np.int64)
    found = np.full(mask.shape, -1)
    for row, start, end, label in zip(runs.row, runs.start, runs.end, labels, strict=True):
        found[row, start:end] = label
    assert ((found >= 0) == mask).all()
    pixels = list(map(tuple, np.argwhere(mask)))
    for y, x in pixels:
        near = [(v, w) for v, w in pixels if abs(v - y) <= 1 and abs(w - x) <= 1]
        assert {int(found[p]) for p in near} == {int(found[y, x])}
    assert len(set(labels.tolist())) == _count_by_flood(set(pixels))


def _count_by_flood(pixels: set[tuple[int, int]]) -> int:
    count = 0
    while pixels:
        count += 1
        open_pixels = [pixels.pop()]
        while open_pixels:
            y, x = open_pixels.pop()
            near = {p for p in pixels if abs(p[0] - y) <= 1 and abs(p[1] - x) <= 1}
            pixels -= near
            open_pixels += near
    return count


@given(POINTS)
def test_the_smallest_rectangle_holds_its_points_and_is_no_larger_than_the_upright_one(
    points: list[tuple[int, int]],
):
    array = np.array(points, np.float64)
    rectangle = rectangles.smallest_rectangle(array)
    for axis in (rectangle.along, rectangle.across):
        length = float(np.hypot(*axis))
        if length > 0:
            reach = np.abs((array - rectangle.centre) @ axis / length)
            assert reach.max() <= length + 1e-6
    width, height = rectangle.sides
    assert width * height <= np.prod(np.ptp(array, axis=0)) + 1e-6


def test_a_bar_on_the_map_gives_one_box_grown_by_its_area_and_perimeter():
    probability = np.zeros((64, 128), np.float32)
    probability[20:30, 10:100] = 0.9
    (corners,) = boxes.find_boxes(probability)
    # Grown by a pixel each way, the bar spans 92 x 12 pixels, 91 x 11 between their centres.
    distance = 91 * 11 * boxes.GROWTH / (2 * (91 + 11))
    expected = np.array([[9.5, 19.5], [100.5, 19.5], [100.5, 30.5], [9.5, 30.5]])
    outwards = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    np.testing.assert_allclose(corners, expected + distance * outwards)


@pytest.mark.parametrize("angle", [-40, -9, 0, 4, 30])
def test_a_tilted_bar_gives_a_box_with_its_slope_and_its_top_left_first(angle: int):
    bar = Image.new("L", (300, 300))
    bar.paste(255, (60, 140, 240, 160))
    probability = np.asarray(bar.rotate(angle), np.float32) / 255
    (corners,) = boxes.find_boxes(probability)
    top = corners[1] - corners[0]
    assert np.degrees(np.arctan2(-top[1], top[0])) == pytest.approx(angle, abs=1)
    assert corners.mean(0) == pytest.approx([150, 150], abs=1)


def test_faint_and_tiny_marks_give_no_box():
    probability = np.zeros((64, 64), np.float32)
    probability[5:15, 5:60] = 0.35
    probability[40:41, 40:41] = 1.0
    assert boxes.find_boxes(probability) == []
    assert boxes.find_boxes(np.zeros((64, 64), np.float32)) == []


def test_a_tilted_table_is_read_row_by_row():
    slope = np.radians(6)
    turn = np.array([[np.cos(slope), np.sin(slope)], [-np.sin(slope), np.cos(slope)]])
    flat = [
        np.array([[x, y], [x + 80, y], [x + 80, y + 20], [x, y + 20]]) @ turn
        for y in (0, 30, 60)
        for x in (0, 300, 600)
    ]
    order = list(range(9))
    random.Random(1).shuffle(order)
    read = rectangles.reading_order([flat[index] for index in order])
    assert [order[index] for index in read] == list(range(9))
    assert rectangles.reading_order([]) == []


def test_a_crop_is_the_inside_of_its_box_and_a_tall_one_is_laid_down():
    pixels = np.zeros((40, 60, 3), np.uint8)
    pixels[10:20, 5:45] = 200
    page = Image.fromarray(pixels)
    flat = crops.cut_line(page, np.array([[5, 10], [45, 10], [45, 20], [5, 20]], np.float64))
    assert flat.shape == (10, 40, 3) and (flat == 200).all()
    tall = crops.cut_line(page, np.array([[5, 0], [15, 0], [15, 40], [5, 40]], np.float64))
    assert tall.shape == (10, 40, 3)


def test_an_image_is_padded_with_zeros_and_its_colours_are_turned_round():
    image = np.array([[[255, 0, 0], [0, 0, 255]]], np.uint8)
    canvas = crops.padded(image, 4, height=3)
    assert canvas.shape == (3, 3, 4) and canvas.dtype == np.float32
    np.testing.assert_array_equal(canvas[:, 0, 0], [-1, -1, 1])
    np.testing.assert_array_equal(canvas[:, 0, 1], [1, -1, -1])
    assert not canvas[:, 1:].any() and not canvas[:, :, 2:].any()


@pytest.mark.parametrize(
    ("width", "bucket"), [(1, 320), (320, 320), (321, 480), (960, 960), (1280, 1280)]
)
def test_a_line_goes_to_the_narrowest_bucket_that_holds_it(width: int, bucket: int):
    assert crops.bucket_width(width) == bucket


def test_a_long_line_is_cut_between_words_and_loses_no_column():
    text = "a line of many words " * 8
    image = pages.draw_page([text], pages.Look(font_px=30), noise_seed=0)[20:-20]
    pieces = crops.chunk_lines([image])
    whole = crops.resized(image, -(-48 * image.shape[1] // image.shape[0]), height=48)
    assert len(pieces) > 1
    np.testing.assert_array_equal(np.concatenate([p.image for p in pieces], 1), whole)
    assert [p.follows_gap for p in pieces] == [False, *[True] * (len(pieces) - 1)]
    for piece in pieces[1:]:
        assert piece.image[:, 0].min() > 150, "a cut goes through paper, not through ink"


def test_a_long_line_without_gaps_is_cut_all_the_same():
    image = np.random.default_rng(0).integers(0, 255, (48, 3000, 3), np.uint8)
    pieces = crops.chunk_lines([image])
    assert sum(piece.image.shape[1] for piece in pieces) == 3000
    assert all(piece.image.shape[1] <= piece.width <= 1280 for piece in pieces)


def test_an_endless_line_is_squeezed_so_that_its_pieces_are_bounded():
    pieces = crops.chunk_lines([np.zeros((1, 20_000, 3), np.uint8)])
    assert len(pieces) <= 8


def test_repeats_and_blanks_are_dropped_and_a_blank_parts_equal_letters():
    classes = [0, 1, 1, 0, 1, 2, 2, 2, 0, 0]
    chances = [0.9, 0.8, 0.1, 0.9, 0.6, 1.0, 0.2, 0.2, 0.9, 0.9]
    steps = np.stack((classes, chances), 1).astype(np.float32)
    text, certainty = ctc.decode(steps, ["", "a", "b"])
    assert text == "aab"
    assert certainty == pytest.approx(0.8)
    assert ctc.decode(np.zeros((5, 2), np.float32), ["", "a"]) == ("", 0.0)


@pytest.mark.parametrize(
    ("a", "b", "distance"),
    [("", "", 0), ("abc", "", 3), ("", "abc", 3), ("kitten", "sitting", 3), ("ab", "ba", 2)],
)
def test_the_edit_distance_of_known_pairs(a: str, b: str, distance: int):
    assert score.edit_distance(a, b) == distance


@given(st.text("abc", max_size=12), st.text("abc", max_size=12))
def test_the_edit_distance_is_symmetric_and_bounded(a: str, b: str):
    distance = score.edit_distance(a, b)
    assert distance == score.edit_distance(b, a)
    assert abs(len(a) - len(b)) <= distance <= max(len(a), len(b))


def test_the_error_rate_ignores_how_lines_are_broken():
    assert score.character_error_rate("a b\nc", "a  b c") == 0
    assert score.character_error_rate("abd", "abc") == pytest.approx(1 / 3)
    assert score.character_error_rate("", "") == 0
    assert score.character_error_rate("x", " ") == 1


def test_the_same_seed_draws_the_same_invoice():
    one, same, other = pages.invoice(5), pages.invoice(5), pages.invoice(6)
    assert one.text == same.text != other.text
    np.testing.assert_array_equal(one.image, same.image)
    assert 5 <= len(one.text.splitlines()) <= 12
