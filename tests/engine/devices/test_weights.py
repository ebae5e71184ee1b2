"""Weights: what is known of a model after a moment, and what is said when there is none."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from engine.devices.catalog import PUBLISHED
from engine.devices.dry_run import make_input, scratch_bytes, watch_pass
from engine.devices.probe import Line, fit_line
from engine.devices.weights import Images
from engine.errors import InputError
from engine.spec import Bucket
from tests.engine.devices.nets import CONV, IN_PLACE, ROW, SAME, TIED, WORDY, make_spec


def test_a_dry_run_grows_with_the_batch_as_a_real_run_does_to_the_byte() -> None:
    module = CONV.build()
    assert isinstance(module, nn.Module)
    module.eval()
    real = [watch_pass(module, make_input(CONV.buckets[0], n)).peak_bytes for n in (1, 4, 16)]
    module.to("meta")
    planned = [
        watch_pass(module, make_input(CONV.buckets[0], n, device="meta")).peak_bytes
        for n in (1, 4, 16)
    ]
    over = {dry - wet for dry, wet in zip(planned, real, strict=True)}
    assert len(over) == 1, "the norm's own few numbers per channel are seen dry only"
    assert 0 <= over.pop() < 64
    assert planned[2] - planned[1] == 4 * (planned[1] - planned[0])


def test_a_workspace_is_never_smaller_than_what_a_batch_was_seen_to_hold() -> None:
    images = Images()
    for spec in (TIED, CONV):
        image = images.add(spec, ["cpu"])
        for profile in image.profiles:
            module = spec.build()
            assert isinstance(module, nn.Module)
            bucket = next(b for b in spec.buckets if b.shape == profile.key.shape)
            for items in (1, 4):
                x = make_input(bucket, items)
                assert profile.workspace_bytes(items) >= watch_pass(module.eval(), x).peak_bytes
                assert scratch_bytes(module, x) >= x.nbytes


def test_every_item_shape_has_a_profile_that_says_how_it_was_made() -> None:
    image = Images().add(CONV, ["cpu", "simulated"])
    keys = [(p.key.device_kind, p.key.shape) for p in image.profiles]
    shapes = [bucket.shape for bucket in CONV.buckets]
    assert keys == [(kind, shape) for kind in ("cpu", "simulated") for shape in shapes]
    for profile in image.profiles:
        assert profile.weight_bytes == image.size_bytes > 0
        assert profile.workspace_item_bytes >= ROW.item_bytes
        assert profile.latency.at(1) > 0
        assert "dry run" in profile.source
        assert ("CPU figures" in profile.source) == (profile.key.device_kind == "simulated")


def test_a_published_model_is_simulated_with_the_published_figures() -> None:
    spec = make_spec(PUBLISHED[0], lambda: nn.Linear(8, 8))
    (profile,) = Images().add(spec, ["simulated"]).profiles
    assert profile.key.shape == ()
    assert "DeepLearningExamples" in profile.source


def test_a_card_that_is_not_there_leaves_the_figures_of_the_cpu_and_says_so() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a card")
    (profile,) = Images().add(TIED, ["cuda"]).profiles
    assert "CPU figures" in profile.source


def test_a_model_whose_sizes_depend_on_its_numbers_is_measured_in_a_real_run() -> None:
    (profile,) = Images().add(WORDY, ["cpu"]).profiles
    assert "real run" in profile.source
    assert profile.workspace_item_bytes >= 2 * ROW.item_bytes


def test_a_model_that_writes_to_its_input_is_found_out() -> None:
    images = Images()
    assert images.add(IN_PLACE, ["cpu"]).writes_input
    assert not images.add(SAME, ["cpu"]).writes_input


def test_a_model_is_built_once_per_description() -> None:
    images = Images()
    first = images.add(TIED, ["cpu"])
    assert images.add(TIED, ["cpu"]) is first is images["tied"]
    assert images.add(replace(TIED, source="another"), ["cpu"]) is not first


def boom() -> object:
    raise FileNotFoundError("weights.safetensors")


class TwoOutputs(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x, x


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (replace(TIED, missing="weights missing: run `fetch`"), "missing: run `fetch`"),
        (make_spec("absent", boom), "absent: cannot be built: FileNotFoundError"),
        (make_spec("number", lambda: 7), "build returned int, wanted a torch.nn.Module"),
        (make_spec("pair", TwoOutputs), "forward returned tuple, wanted one tensor"),
        (make_spec("sum", lambda: nn.Flatten(0)), "one row per item"),
        (make_spec("narrow", lambda: nn.Linear(4, 4)), r"narrow: a first run .* \(8,\) failed"),
        (make_spec("far", lambda: nn.Linear(8, 8, device="meta")), "cannot be packed"),
        (make_spec("lazy", lambda: nn.LazyLinear(8)), "cannot be packed"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_what_cannot_be_built_or_run_is_said_in_one_line(spec: object, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        Images().add(spec, ["cpu"])
    assert "\n" not in str(caught.value)


def test_a_line_is_never_below_its_points() -> None:
    assert fit_line((1, 10), (4, 40)) == Line(0, 10)
    assert fit_line((1, 10), (4, 19)) == Line(7, 3)
    assert fit_line((1, 10), (4, 5)) == Line(10, 0)
    assert fit_line((1, 10), (4, 100)) == Line(0, 25)


def test_integers_are_probed_with_zeros() -> None:
    spec = make_spec("tokens", lambda: nn.Embedding(5, 3), (Bucket((6,), "int64"),))
    (profile,) = Images().add(spec, ["cpu"]).profiles
    assert profile.workspace_bytes(1) >= 6 * 8 + 6 * 3 * 4
