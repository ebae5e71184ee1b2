"""A load plan refuses what nobody can send, in one line that names the field."""

from __future__ import annotations

import math

import pytest

from engine.errors import InputError
from engine.load.plan import LoadPlan


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rate_hz", -1.0),
        ("rate_hz", math.nan),
        ("rate_hz", math.inf),
        ("rate_hz", "fast"),
        ("rate_hz", True),
        ("kind", "ramp"),
        ("cv", 0),
        ("clients", 0),
        ("clients", 1.5),
        ("items", 0),
        ("seconds", 0),
        ("seed", -1),
        ("priority_class", 10),
        ("deadline_ms", -5),
        ("target", ""),
    ],
)
def test_a_wrong_value_is_refused_in_one_line_that_names_the_field(field: str, value: object):
    with pytest.raises(InputError) as found:
        LoadPlan(**{"target": "ocr", field: value})
    text = str(found.value)
    assert text.startswith(f"{field}: found ") and "wanted" in text and "\n" not in text


def test_a_plan_survives_its_json():
    plan = LoadPlan("ocr", "burst", rate_hz=0.5, cv=3, seconds=20, priority_class=0)
    assert LoadPlan.from_json(plan.to_json()) == plan


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("{", "load: not JSON"),
        ("[]", "load: found []"),
        ('{"target": "ocr", "rate": 1}', "rate: no such field"),
        ("{}", "target: missing"),
        ('{"target": 3}', "target: found 3"),
    ],
)
def test_a_bad_document_is_refused_in_one_line(text: str, wanted: str):
    with pytest.raises(InputError) as found:
        LoadPlan.from_json(text)
    assert str(found.value).startswith(wanted) and "\n" not in str(found.value)
