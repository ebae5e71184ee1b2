"""Check that what the registry promises is what the models do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from torch import nn

from engine.spec import Bucket
from sample_models import MODELS, PIPELINES, cache, fetch, samples
from tests.sample_models.conftest import Run

BY_NAME = {spec.name: spec for spec in MODELS}


def test_the_default_models_and_the_pipeline_are_listed():
    names = {"text_detector", "line_direction", "text_recognizer", "digit_reader", "ranker"}
    assert names <= set(BY_NAME)
    assert [pipeline.name for pipeline in PIPELINES] == ["ocr"]
    assert set(PIPELINES[0].models) <= set(BY_NAME)


@pytest.mark.parametrize("name", list(BY_NAME))
def test_inputs_fit_a_bucket_and_right_answers_score_well(name: str, run: Run):
    spec = BY_NAME[name]
    if spec.missing:
        pytest.skip(spec.missing)
    for seed in (1, 2):
        sample = spec.inputs(seed)
        assert Bucket(sample.payload.shape[1:], str(sample.payload.dtype)) in spec.buckets
        np.testing.assert_array_equal(sample.payload, spec.inputs(seed).payload)
        output = run(name, sample.payload)
        assert len(output) == len(sample.payload)
        for figure, value in spec.score(output, sample.truth).items() if spec.score else ():
            assert value <= 0.1 if figure == "cer" else value >= 0.9


@pytest.mark.parametrize("name", list(BY_NAME))
def test_networks_come_ready_to_run_in_float32_with_fixed_weights(
    name: str, networks: dict[str, nn.Module]
):
    if BY_NAME[name].missing:
        pytest.skip(BY_NAME[name].missing)
    network = networks[name]
    assert not network.training
    for parameter in network.parameters():
        assert str(parameter.dtype) == "torch.float32"
        assert parameter.is_contiguous() and not parameter.requires_grad


def test_importing_the_registry_does_not_import_torch():
    code = "import sys, sample_models; sys.exit('torch' in sys.modules)"
    assert _python("-c", code, cache_folder=cache.cache_folder()).returncode == 0


def test_a_page_by_seed_scores_nothing_for_its_own_text():
    sample = samples.page_sample(1)
    answer = type("Answer", (), {"text": sample.truth})()
    assert PIPELINES[0].score(answer, sample.truth) == {"cer": 0.0}


def test_without_weights_the_models_say_what_to_run(tmp_path: Path):
    code = (
        "from sample_models import MODELS, PIPELINES\n"
        "print([model.missing for model in MODELS], PIPELINES[0].missing)"
    )
    said = _python("-c", code, cache_folder=tmp_path)
    assert said.stdout.count("weights missing: run `python -m sample_models.fetch`") == 4


def test_without_a_network_the_set_up_says_in_one_line_what_to_do(tmp_path: Path):
    said = _python("-m", "sample_models.fetch", cache_folder=tmp_path)
    assert said.returncode == 1
    assert len(said.stderr.splitlines()) == 1
    assert "check the network" in said.stderr
    optional = _python("-m", "sample_models.fetch", "--optional", cache_folder=tmp_path)
    assert optional.returncode == 0


def test_a_finished_set_up_is_left_alone():
    if PIPELINES[0].missing:
        pytest.skip(PIPELINES[0].missing)
    before = cache.weights_path("text_recognizer").stat().st_mtime_ns
    said: list[str] = []
    fetch.fetch(said.append)
    assert cache.weights_path("text_recognizer").stat().st_mtime_ns == before
    assert not any("downloading" in line or "converted" in line for line in said)


def _python(*arguments: str, cache_folder: Path) -> subprocess.CompletedProcess[str]:
    # A closed port stands for a machine without a network.
    environment = {
        "MILLPOND_CACHE": str(cache_folder),
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_INDEX_URL": "http://127.0.0.1:9/",
        "PIP_RETRIES": "0",
        "PATH": "",
    }
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=Path(__file__).parents[2],
    )
