"""Share built networks and a plain way to run the pipeline between the tests."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from sample_models import MODELS, PIPELINES, ocr

torch.set_num_threads(1)

Run = Callable[[str, np.ndarray], np.ndarray]
Read = Callable[[object], ocr.OcrResult]


@pytest.fixture(scope="session")
def networks() -> dict[str, nn.Module]:
    """Return every network whose weights are on this machine, by name."""
    return {spec.name: spec.build() for spec in MODELS if not spec.missing}


@pytest.fixture(scope="session")
def run(networks: dict[str, nn.Module]) -> Run:
    """Return a function that runs a network on an array; it skips without its weights."""

    def call(name: str, x: np.ndarray) -> np.ndarray:
        spec = next(spec for spec in MODELS if spec.name == name)
        if spec.missing:
            pytest.skip(spec.missing)
        with torch.inference_mode():
            return networks[name](torch.from_numpy(x)).numpy()

    return call


@pytest.fixture(scope="session")
def read(run: Run) -> Read:
    """Return a function that reads a page, stage by stage, as a driver does."""
    pipeline = PIPELINES[0]

    def call(image: object) -> ocr.OcrResult:
        context = pipeline.start(image)
        for stage in pipeline.stages:
            outputs = tuple(run(stage.model, x) for x in stage.prepare(context))
            context = stage.combine(context, outputs)
        return pipeline.finish(context)

    return call
