"""Recent: a ring of the last seconds, read by any number of pages."""

from __future__ import annotations

from ops.recent import KEPT_SECONDS, Mark, Recent, Second
from ops.sampling import sample
from tests.ops.states import device, model, snapshot


def second(number: int) -> Second:
    before, after = snapshot(number), snapshot(number + 1, (device(),), (model(),))
    return sample(before, after, at_ms=number * 1000)


def test_only_the_seconds_asked_for_come_back_oldest_first() -> None:
    recent = Recent()
    for number in range(10):
        recent.add(second(number))
    assert [row.at_ms for row in recent.devices(3)] == [7000, 8000, 9000]
    assert len(recent.models(100)) == 10
    assert recent.tick == 10


def test_the_oldest_seconds_are_forgotten() -> None:
    recent = Recent()
    for number in range(KEPT_SECONDS + 5):
        recent.add(second(number))
    assert recent.devices()[0].at_ms == 5000
    assert len(recent.devices()) == KEPT_SECONDS


def test_marks_come_back_with_the_seconds_around_them() -> None:
    recent = Recent()
    recent.add(second(1), [Mark(900, "policy", "v1")])
    recent.add(second(100), [Mark(99_900, "evict", "a")])
    assert [mark.text for mark in recent.marks(10)] == ["a"]
    assert [mark.text for mark in recent.marks(900)] == ["v1", "a"]
