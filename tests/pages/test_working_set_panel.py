"""Working set panel: the sentence says what the curve shows, in the operator's units."""

from __future__ import annotations

import json

from engine.decisions import Decision, Kind, Reason
from engine.memory.working_set import Access
from engine.units import MIB, NS_PER_S
from ops.sampling import sample
from shell.working_set_panel import accesses, curve, room_bytes, sentence, with_peak
from tests.ops.states import device, model, snapshot

MODELS = (model("a"), model("b"), model("c"))  # 40 MiB each, the device lends 100 MiB
HERE = snapshot(1, (device(),), MODELS)


def in_turn(names: str, times: int) -> list[Access]:
    return [Access(n * NS_PER_S, name) for n, name in enumerate(names * times)]


def test_three_models_in_turn_where_two_fit_would_stop_loading_with_a_quarter_more() -> None:
    words = sentence(in_turn("abc", 20), HERE, device=device())
    assert words.startswith(
        "With **25.0 MiB more**, loads would fall from 58.0 to 0 per minute"
    )
    assert words.endswith("by the last 59.0 s of traffic.")


def test_what_fits_names_the_bytes_that_were_not_needed() -> None:
    words = sentence(in_turn("ab", 20), HERE, device=device())
    assert words.startswith("Everything used twice stays resident; **20.0 MiB** less would do")


def test_few_batches_or_models_used_once_give_no_advice() -> None:
    assert "20 are wanted" in sentence(in_turn("ab", 3), HERE, device=device())
    once = [Access(n, f"m{n}") for n in range(30)]
    assert "No model was used twice" in sentence(once, HERE, device=device())


def test_the_curve_falls_to_nothing_where_all_fit() -> None:
    drawn = json.loads(curve(in_turn("abc", 20), HERE, device=device()))
    (trace,) = drawn["data"]
    by_size = dict(zip(trace["x"], trace["y"], strict=True))
    assert by_size[118.8] > 0
    assert by_size[121.9] == 0
    assert drawn["layout"]["shapes"][0]["x0"] == 100.0


def test_only_batches_of_the_device_count() -> None:
    found = [
        Decision(1, 5, Kind.BATCH, Reason.FULL, model="a", device="cpu:0"),
        Decision(2, 6, Kind.LOAD, Reason.QUEUE, model="b", device="cpu:0"),
        Decision(3, 7, Kind.BATCH, Reason.FULL, model="c", device="cpu:1"),
    ]
    assert accesses(found, "cpu:0") == [Access(5, "a")]


def test_what_leases_took_lately_is_no_room_for_weights() -> None:
    before = snapshot(0, (device(lease_bytes=30 * MIB),), ())
    seconds = sample(
        before, snapshot(1, (device(lease_bytes=70 * MIB),), ()), at_ms=1000
    ).devices
    assert room_bytes(with_peak(device(), seconds)) == 30 * MIB
    assert room_bytes(with_peak(device("cpu:1"), seconds)) == 100 * MIB
