"""Tests of the live driver: results, order, replay, cancellation, closing."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError

import numpy as np
import pytest

from engine.drivers.event_log import EventLog
from engine.engine import Engine
from engine.errors import Failed, InputError, PolicyError, Refused
from engine.events import Command
from engine.policy import Policy
from engine.rules import PRECISIONS
from engine.scheduler.core import EngineCore
from tests.engine.drivers.bench_device import TestBench, open_engine, spin


def rows(*values: float) -> np.ndarray:
    """Return one item per value."""
    return np.array([[value, value] for value in values], np.float32)


@pytest.fixture
def bench() -> TestBench:
    """Return a device under control."""
    return TestBench()


@pytest.fixture
def engine(bench: TestBench) -> Iterator[Engine]:
    """Return an engine over it, closed at the end."""
    engine = open_engine([bench], models=("a", "b"))
    yield engine
    engine.close()


def test_a_result_comes_back_to_its_caller(engine: Engine):
    assert engine.infer("a", rows(1, 2)).tolist() == [[2, 2], [4, 4]]


def test_coroutines_and_threads_share_batches(engine: Engine, bench: TestBench):
    engine.infer("a", rows(0))
    before = bench.runs

    async def crowd() -> list[np.ndarray]:
        bench.gate.clear()
        first = engine.submit("a", rows(0))
        waits = [engine.infer_async("a", rows(n)) for n in range(1, 9)]
        bench.gate.set()
        results = await asyncio.gather(*waits)
        return [await asyncio.wrap_future(first), *results]

    results = asyncio.run(crowd())
    assert [result[0, 0] for result in results] == [2 * n for n in range(9)]
    assert bench.runs - before <= 2


def test_a_split_request_comes_back_whole_and_in_order(bench: TestBench):
    policy = Policy().replace(default={"high": 3})
    engine = open_engine([bench], policy=policy)
    try:
        assert engine.infer("a", rows(*range(8)))[:, 0].tolist() == [2 * n for n in range(8)]
        assert bench.runs == 3
    finally:
        engine.close()


def test_one_bad_item_fails_alone(engine: Engine, bench: TestBench):
    def answer(x: np.ndarray) -> np.ndarray:
        if (x < 0).any():
            raise ValueError("below zero")
        return x

    bench.answer = answer
    bench.gate.clear()
    futures = [engine.submit("a", rows(n)) for n in (0, 1, -1, 2, 3)]
    bench.gate.set()
    with pytest.raises(Failed, match="below zero"):
        futures[2].result(10)
    assert [f.result(10)[0, 0] for f in futures if f is not futures[2]] == [0, 1, 2, 3]


def test_a_cancelled_request_leaves_the_queue(engine: Engine, bench: TestBench):
    bench.gate.clear()
    running = engine.submit("a", rows(1))
    waiting = engine.submit("a", rows(2))
    assert waiting.cancel()
    bench.gate.set()
    running.result(10)
    with pytest.raises(CancelledError):
        waiting.result(10)
    assert engine.snapshot().model("a").counters.cancelled == 1


def test_a_coroutine_that_gives_up_cancels_its_request(engine: Engine, bench: TestBench):
    async def impatient() -> None:
        bench.gate.clear()
        engine.submit("a", rows(1))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(engine.infer_async("a", rows(2)), 0.01)

    asyncio.run(impatient())
    bench.gate.set()
    assert engine.snapshot().model("a").counters.cancelled == 1


def test_bad_input_is_one_line_and_disturbs_nobody(engine: Engine):
    cases = (
        (lambda: engine.infer("nobody", rows(1)), "no such model; there are a, b"),
        (
            lambda: engine.infer("a", np.zeros((1, 3), np.float32)),
            r"wanted float32 \(items, 2\)",
        ),
        (lambda: engine.infer("a", np.zeros((1, 2))), "found float64"),
        (lambda: engine.infer("a", np.zeros((0, 2), np.float32)), "no items"),
        (lambda: engine.infer("a", [1, 2]), "wanted an array or tensor, found list"),
        (lambda: engine.infer("a", rows(1), priority_class=12), "wanted 0 to 9"),
        (lambda: engine.infer("a", rows(1), deadline_ms=-1), "wanted more than 0"),
        (lambda: engine.infer("a", rows(1), deadline_ms=float("nan")), "wanted more than 0"),
        (lambda: engine.command(Command.LOAD, author="ada", model="x"), "no such model"),
        (lambda: engine.command(Command.DRAIN, author="ada", device="x"), "no such device"),
    )
    for call, message in cases:
        with pytest.raises(InputError, match=message) as caught:
            call()
        assert "\n" not in str(caught.value)
    assert engine.infer("a", rows(1))[0, 0] == 2


def test_a_full_queue_refuses_with_the_limit_and_keeps_nothing(bench: TestBench):
    policy = Policy().replace(admission={"queue_items": 2})
    engine = open_engine([bench], policy=policy)
    try:
        bench.gate.clear()
        futures = [engine.submit("a", rows(1))]
        while engine.snapshot().model("a").running_items == 0:
            pass
        futures += [engine.submit("a", rows(n)) for n in (2, 3)]
        with pytest.raises(Refused) as caught:
            engine.submit("a", rows(4))
        assert caught.value.limit == "admission.queue_items"
        assert (caught.value.wanted, caught.value.found) == (1, 0)
        bench.gate.set()
        assert [f.result(10)[0, 0] for f in futures] == [2, 4, 6]
    finally:
        engine.close()


def test_two_edits_from_the_same_version_conflict(engine: Engine):
    base = engine.policy
    engine.apply(
        base.replace(models={"a": {"high": 2}}),
        author="ada",
        reason="smaller",
        expected_version=base.version,
    )
    with pytest.raises(PolicyError, match="based on version 0, version 1 is in force"):
        engine.apply(
            base.replace(models={"a": {"high": 4}}),
            author="bob",
            reason="larger",
            expected_version=base.version,
        )
    assert engine.policy.model("a").high == 2


def test_an_edit_takes_effect_on_the_next_batch(engine: Engine, bench: TestBench):
    engine.infer("a", rows(0))
    engine.apply(
        engine.policy.replace(models={"a": {"high": 2}}),
        author="ada",
        reason="smaller",
        expected_version=engine.policy.version,
    )
    before = bench.runs
    engine.infer("a", rows(1, 2, 3, 4))
    assert bench.runs - before == 2


def test_closing_finishes_what_is_queued_and_refuses_more(bench: TestBench):
    engine = open_engine([bench])
    bench.gate.clear()
    future = engine.submit("a", rows(1))
    closer = threading.Thread(target=engine.close)
    closer.start()
    bench.gate.set()
    closer.join()
    assert future.result(1)[0, 0] == 2
    with pytest.raises(Refused, match="closing"):
        engine.submit("a", rows(1))


HURRY = Policy().replace(
    default={"precisions": ("fp32", "bf16", "int8")},
    memory={
        "protect_idle_ms": 1.0,
        "min_residence_ms": 0.0,
        "ladder": ("smaller_batch", "compact", "convert", "evict", "wait"),
        "restore_share": 0.1,
    },
)
"""Makes room in every way, and lets nobody wait for long."""


def scrambled_load(engine: Engine, benches: list[TestBench], *, seed: int) -> list[float]:
    """Send requests from four threads while every step of the devices is delayed by chance."""
    chance = random.Random(seed)
    for one in benches:
        one.before = lambda: spin(chance.randrange(0, 60_000))
    results: list[float] = []
    noted = threading.Lock()

    def client(number: int) -> None:
        mine = random.Random(seed * 10 + number)
        for n in range(40):
            model = mine.choice("abcdefg")
            engine.operator.convert(model, mine.choice(PRECISIONS), author="ada")
            engine.operator.compact(author="ada")
            output = engine.infer(model, rows(n), priority_class=mine.randrange(10))
            with noted:
                results.append(float(output[0, 0]) / 2 - n)

    threads = [threading.Thread(target=client, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.mark.parametrize("seed", range(3))
def test_scrambled_threads_never_break_the_order_of_effects(seed: int):
    benches = [TestBench(f"bench:{n}", pool_mib=25) for n in range(2)]
    engine = open_engine(benches, models="abcdefg", policy=HURRY, are_varied=True)
    try:
        assert scrambled_load(engine, benches, seed=seed) == [0.0] * 160
        assert [bench.wrong for bench in benches] == [[], []]
        assert sum(bench.changes for bench in benches) > 0, "weights moved and were converted"
        for state, bench in zip(engine.snapshot().memory.devices, benches, strict=True):
            assert state.resident_bytes == bench.truth_bytes()
            assert state.held_bytes + state.free_bytes == state.pool_bytes
    finally:
        engine.close()


def replay(log: EventLog, core: EngineCore, *, start: int = 0) -> list[str]:
    """Feed a log to a core and return its effects as text."""
    return [
        repr(effect)
        for event, now_ns in log.entries(start)
        for effect in core.handle(event, now_ns)
    ]


def test_a_live_log_replays_through_a_fresh_core_and_through_one_restored_in_mid_log():
    log = EventLog()
    benches = [TestBench(f"bench:{n}", pool_mib=25) for n in range(2)]
    engine = open_engine(benches, models="abcdefg", policy=HURRY, recorder=log, are_varied=True)
    scrambled_load(engine, benches, seed=1)
    engine.close()
    policy = HURRY.compile()
    whole = replay(log, EngineCore(policy))
    recorded = [repr(effect) for effect in log.decisions]
    replayed = [text for text in whole if text.startswith("Decision")]
    assert recorded == replayed
    middle = len(log) // 2
    first = EngineCore(policy)
    early = [
        repr(effect)
        for event, now_ns in list(log.entries())[:middle]
        for effect in first.handle(event, now_ns)
    ]
    restored = EngineCore.from_state(first.state())
    assert early + replay(log, restored, start=middle) == whole
