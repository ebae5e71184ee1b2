"""Tests of what pages compute before they draw: pure, without Streamlit."""

from __future__ import annotations

import json

import pytest

from engine.metrics import LatencyHistogram
from engine.policy import Policy
from ops.recent import Mark
from shell import charts, differences, frames
from shell.colours import PALETTE, colour_of
from storage.samples import ModelSample

START_MS = 1_700_000_000_000


def sample(second: int, *, model: str = "ranker", latency_ms: tuple[int, ...] = ()):
    """Return a second in which requests took so long."""
    histogram = LatencyHistogram()
    for one in latency_ms:
        histogram.record(one * 1_000_000)
    packed = histogram.to_bytes()
    nothing = dict.fromkeys(
        ("failed", "refused", "expired", "cancelled", "loads", "evictions", "loaded_bytes"), 0
    )
    return ModelSample(
        at_ms=START_MS + 1000 * second,
        model=model,
        submitted=len(latency_ms),
        completed=len(latency_ms),
        items=len(latency_ms),
        batches=len(latency_ms),
        good=len(latency_ms),
        queued_items=0,
        residents=1,
        latency=packed,
        queueing=packed,
        service=packed,
        **nothing,
    )


def test_percentiles_are_of_the_last_five_seconds_and_a_longer_rest_is_a_gap():
    seconds = [sample(0, latency_ms=(10,)), *[sample(n) for n in range(1, 7)]]
    p50 = frames.latency(seconds)["p50"]
    assert p50[:5] == [pytest.approx(10, rel=0.07)] * 5
    assert p50[5:] == [None, None]


def test_percentiles_come_from_all_models_together():
    both = [sample(0, latency_ms=(10,) * 9), sample(0, model="other", latency_ms=(100,))]
    assert frames.latency(both)["p99"] == [pytest.approx(100, rel=0.07)]


def test_counts_of_samples_further_apart_become_the_same_rate():
    assert frames.per_second([4, 8, 8], [0, 2000, 4000]) == [2, 4, 4]
    assert frames.per_second([3], [0]) == [3]


def test_the_busiest_models_keep_a_colour_and_the_others_are_added_up():
    columns = {f"m{n}": [float(n)] for n in range(11)}
    found = frames.busiest(columns)
    assert list(found) == [f"m{n}" for n in range(4, 11)] + ["other"]
    assert found["other"] == [1 + 2 + 3]


def test_a_models_colour_does_not_depend_on_who_else_is_busy():
    known = ["zebra", "ant", "bee"]
    assert colour_of("ant", known) == colour_of("ant", [*known, "aardvark"])
    assert colour_of("long gone", known) in PALETTE


def test_a_chart_holds_its_instants_once_and_has_a_sentence_when_nothing_happened():
    idle = json.loads(charts.lines([START_MS], {"p99": [None]}, colours={}))
    assert "x" not in idle["data"][0]
    assert len(idle["x"]) == 1
    assert "No samples" in idle["layout"]["annotations"][0]["text"]


def test_a_target_far_above_the_values_is_named_and_does_not_press_the_chart_flat():
    def drawn(target: float) -> dict[str, list[dict[str, str]]]:
        style = {"unit": "ms", "target": target}
        text = charts.lines([START_MS], {"p99": [10.0]}, colours={}, style=style)
        return json.loads(text)["layout"]

    assert len(drawn(20)["shapes"]) == 1
    assert drawn(5000)["shapes"] == []
    assert "far above" in drawn(5000)["annotations"][0]["text"]


def test_marks_of_one_kind_that_would_overlap_become_one_flag():
    marks = [Mark(START_MS + n, "evict", f"model {n}") for n in range(3)]
    marks.append(Mark(START_MS, "policy", "version 2"))
    shapes, notes = charts.mark_shapes(marks, [frames.local_ms(START_MS), 2 * START_MS])
    assert [note["text"] for note in notes] == ["3E", "P"]
    assert len(shapes) == 2


def test_policies_are_compared_by_what_holds_for_each_model():
    old = Policy()
    new = old.replace(models={"ranker": {"high": 4}}, placement={"policy": "round_robin"})
    assert differences.between({"now": old, "new": new}, ["ranker", "digit_reader"]) == [
        {"setting": "ranker · high", "now": "16", "new": "4"},
        {"setting": "placement · policy", "now": "memory_aware", "new": "round_robin"},
    ]
