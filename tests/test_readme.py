"""The README's examples run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from ops.station import Station
from sample_models import PIPELINES

README = Path(__file__).resolve().parents[1] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)


def test_the_python_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    missing = PIPELINES[0].missing
    if missing:
        pytest.skip(missing)
    monkeypatch.chdir(tmp_path)
    exec(compile(BLOCKS[0], "README.md", "exec"), {})  # noqa: S102  our own text
    assert len(capsys.readouterr().out) > 50


def test_the_own_model_example_serves(tmp_path: Path):
    module = tmp_path / "my_models.py"
    module.write_text(BLOCKS[1])
    with Station.open(
        store="sqlite:///:memory:", devices="cpu:1x64MiB", models=[str(module)]
    ) as station:
        output = station.engine.infer("scorer", np.zeros((3, 16), np.float32))
        assert np.asarray(output).shape == (3, 4)


def test_the_pool_alone_does_what_its_example_says(capsys: pytest.CaptureFixture[str]):
    exec(compile(BLOCKS[2], "README.md", "exec"), {})  # noqa: S102  our own text
    assert capsys.readouterr().out == f"{1 << 30} ['embedder', 'recogniser']\n"


def test_every_file_that_the_readme_names_is_there():
    named = re.findall(r"`([a-z_]+/[a-z_./]+\.(?:py|md|ipynb|json|png))`", README.read_text())
    named += re.findall(r"\]\((docs/[^)]+)\)", README.read_text())
    assert named
    assert [name for name in named if not (README.parent / name).exists()] == []
