"""Tests of what errors carry."""

from __future__ import annotations

from engine.errors import EngineError, Failed, OutOfMemoryError, Refused, RequestError


def test_a_message_is_one_line():
    assert str(Failed("ValueError: no\n  such item\n")) == "ValueError: no such item"


def test_a_refusal_names_the_limit_and_its_numbers():
    refusal = Refused("full", limit="queue_items", wanted=4, found=1, retry_after_ms=2.5)
    assert (refusal.limit, refusal.wanted, refusal.found) == ("queue_items", 4, 1)
    assert refusal.retry_after_ms == 2.5
    assert isinstance(refusal, RequestError)
    assert isinstance(refusal, EngineError)


def test_a_device_may_not_know_how_much_was_free():
    error = OutOfMemoryError("CUDA out of memory", wanted_bytes=10)
    assert error.wanted_bytes == 10
    assert error.free_bytes is None
