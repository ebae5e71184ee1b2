"""Models: from what a user names to models and pipelines, or one line that says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import InputError
from ops.models import resolve

OWN = """
from engine.spec import Bucket, ModelSpec

MODELS = [ModelSpec({name!r}, lambda: None, (Bucket((2,)),), lambda seed: None)]
"""


def test_a_module_is_imported_by_its_name() -> None:
    catalog = resolve(["sample_models"])
    assert "digit_reader" in [spec.name for spec in catalog.models]
    assert "ocr" in [spec.name for spec in catalog.pipelines]


def test_a_file_and_a_folder_can_be_named(tmp_path: Path) -> None:
    (tmp_path / "own_file_models.py").write_text(OWN.format(name="one"))
    folder = tmp_path / "own_folder_models"
    folder.mkdir()
    (folder / "__init__.py").write_text(OWN.format(name="two"))
    catalog = resolve([str(tmp_path / "own_file_models.py"), str(folder)])
    assert [spec.name for spec in catalog.models] == ["one", "two"]


def test_a_part_of_a_catalogue_holds_what_its_pipeline_needs() -> None:
    part = resolve(["sample_models"]).only("ocr")
    assert [spec.name for spec in part.pipelines] == ["ocr"]
    assert {spec.name for spec in part.models} == {
        "text_detector",
        "line_direction",
        "text_recognizer",
    }
    assert [spec.name for spec in resolve(["sample_models"]).only("ranker").models] == [
        "ranker"
    ]


def test_an_unknown_part_says_what_there_is() -> None:
    with pytest.raises(InputError, match=r"^nobody: no such model or pipeline; there are ocr,"):
        resolve(["sample_models"]).only("nobody")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("MODELS = []", "lists no models"),
        ("MODELS = [1]", "found int, wanted ModelSpec"),
        ("MODELS = 1", "found 1, wanted a list"),
        ("1 / 0", "ZeroDivisionError"),
        ("import not_there_at_all", "needs not_there_at_all, which is not installed"),
        ("def (", "SyntaxError"),
    ],
)
def test_a_bad_file_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / f"bad_models_{abs(hash(text))}.py"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        resolve([str(path)])
    assert "\n" not in str(caught.value)


def test_a_name_that_leads_nowhere_says_what_models_takes() -> None:
    with pytest.raises(InputError, match=r"^nowhere: no such module, file or folder"):
        resolve(["nowhere"])
    with pytest.raises(InputError, match=r"found no nowhere\.py there"):
        resolve(["folder/nowhere.py"])


def test_two_models_of_one_name_are_refused() -> None:
    with pytest.raises(InputError, match="two models or pipelines have that name"):
        resolve(["sample_models", "sample_models"])
