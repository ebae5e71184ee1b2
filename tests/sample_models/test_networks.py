"""Check the hand-written networks against the graphs that their weights come from."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from sample_models import cache, convert, crops, pages, samples
from sample_models.detector_net import DetectorNet
from sample_models.direction_net import DirectionNet
from sample_models.recognizer_net import RecognizerNet
from tests.sample_models.conftest import Run

CONVERSION_TOLERANCE = 1e-4
BATCH_TOLERANCE = 1e-5


def original(name: str, x: np.ndarray) -> np.ndarray:
    """Return what the original graph answers."""
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    path = cache.graph_path(name)
    if not path.is_file():
        pytest.skip(f"graph missing: run `{cache.FETCH}`")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


def page_input() -> np.ndarray:
    """Return two real pages, small enough to be quick."""
    rows = [crops.page_canvas(pages.invoice(seed).image)[:, :352, :384] for seed in (1, 2)]
    return np.stack(rows)


def line_input(width: int) -> np.ndarray:
    """Return three real lines in one bucket."""
    lines = [samples.line_image(seed)[0] for seed in range(3)]
    return np.stack(
        [
            crops.padded(crops.resized(line, width - 9, height=48), width, height=48)
            for line in lines
        ]
    )


@pytest.mark.parametrize(
    ("name", "make", "x"),
    [
        ("text_detector", DetectorNet, page_input()),
        ("line_direction", DirectionNet, line_input(192)),
        ("text_recognizer", lambda: RecognizerNet(18_710), line_input(320)),
    ],
    ids=["detector", "direction", "recogniser"],
)
def test_a_converted_network_answers_as_its_graph_does(
    name: str, make: Callable[[], nn.Module], x: np.ndarray
):
    pytest.importorskip("onnx", reason="onnx is not installed")
    expected = original(name, x)
    network = make()
    network.load_state_dict(
        convert.pair_weights(network, convert.read_units(cache.graph_path(name)))
    )
    network.eval()
    forward = network.probabilities if name == "text_recognizer" else network
    with torch.inference_mode():
        found = forward(torch.from_numpy(x)).numpy()
    assert np.ptp(expected) > 0.5, "the input makes the network answer clearly"
    np.testing.assert_allclose(found, expected, rtol=0, atol=CONVERSION_TOLERANCE)


def test_the_stored_detector_answers_as_its_graph_does(run: Run):
    x = page_input()
    expected = original("text_detector", x)
    np.testing.assert_allclose(
        run("text_detector", x), expected, rtol=0, atol=CONVERSION_TOLERANCE
    )


def test_the_stored_direction_network_answers_as_its_graph_does(run: Run):
    x = line_input(192)
    expected = original("line_direction", x)
    np.testing.assert_allclose(
        run("line_direction", x), expected, rtol=0, atol=CONVERSION_TOLERANCE
    )


def test_the_stored_recogniser_answers_as_its_graph_does_on_the_kept_classes(run: Run):
    x = line_input(320)
    expected = original("text_recognizer", x)
    characters = convert.read_characters(cache.graph_path("text_recognizer"))
    kept = expected[:, :, convert.latin_classes(characters)]
    kept = kept / kept.sum(2, keepdims=True)
    found = run("text_recognizer", x)
    assert found.shape == (3, 40, 2)
    np.testing.assert_array_equal(found[:, :, 0], kept.argmax(2))
    np.testing.assert_allclose(found[:, :, 1], kept.max(2), rtol=0, atol=CONVERSION_TOLERANCE)


@pytest.mark.parametrize(
    ("name", "x"),
    [
        ("text_detector", page_input()),
        ("line_direction", line_input(192)),
        ("text_recognizer", line_input(320)),
        ("digit_reader", samples.held_out_digits()[0][:7]),
        ("ranker", np.concatenate([samples.ranker_sample(seed).payload for seed in range(5)])),
    ],
    ids=["detector", "direction", "recogniser", "digits", "ranker"],
)
def test_a_batch_answers_as_its_items_do_one_by_one(run: Run, name: str, x: np.ndarray):
    together = run(name, x)
    alone = np.concatenate([run(name, x[index : index + 1]) for index in range(len(x))])
    np.testing.assert_allclose(together, alone, rtol=0, atol=BATCH_TOLERANCE)


def test_the_latin_cut_keeps_543_classes_in_their_order():
    if cache.missing("text_recognizer"):
        pytest.skip(cache.missing("text_recognizer"))
    characters = cache.charset()
    assert len(characters) == 543
    assert (characters[0], characters[1], characters[-1]) == ("", "!", " ")
    assert set("azAZ09éß€£") <= set(characters)


def test_the_digit_reader_knows_99_of_100_digits_that_it_was_not_trained_on(run: Run):
    images, digits = samples.held_out_digits()
    assert len(digits) == 360
    assert (run("digit_reader", images).argmax(1) == digits).mean() >= 0.99


def test_the_ranker_has_the_same_weights_every_time_and_leaves_chance_alone(
    networks: dict[str, nn.Module],
):
    from sample_models.ranker import build_ranker  # built again on purpose

    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    again = build_ranker()
    assert torch.equal(torch.rand(3), expected)
    pairs = zip(again.parameters(), networks["ranker"].parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
