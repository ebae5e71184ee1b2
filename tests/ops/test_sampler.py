"""Sampler: what it takes from the engine, where it puts it, what it says of trouble."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from engine.decisions import Decision, Kind, Reason
from engine.drivers.clock import VirtualClock
from engine.errors import DeviceError, StoreError
from engine.snapshot import Snapshot
from engine.units import MIB, NS_PER_S
from ops.recent import Recent
from ops.sampler import Sampler
from ops.time_machine import KeyframeTaker
from storage.keyframes import Keyframe
from storage.samples import DecisionRecord, DeviceSample, ModelSample
from tests.ops.states import device, model, snapshot


class FakeEngine:
    """Be an engine whose states are given."""

    start_wall_ns = 1000 * NS_PER_S

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.state: Snapshot = snapshot(0, (device(),), (model("digits"),))
        self.waiting: list[Decision] = []
        self.trouble = ""

    def sample_truth(self) -> None:
        if self.trouble:
            raise DeviceError(self.trouble)

    def snapshot(self) -> Snapshot:
        return self.state

    def drain_decisions(self) -> list[Decision]:
        found, self.waiting = self.waiting, []
        return found


class FakeStore:
    """Keep what it is given, or refuse it."""

    def __init__(self) -> None:
        self.rows: list[tuple[Sequence[DeviceSample], Sequence[ModelSample]]] = []
        self.decisions: list[DecisionRecord] = []
        self.keyframes: list[Keyframe] = []
        self.trouble = ""

    def append(
        self,
        devices: Sequence[DeviceSample],
        models: Sequence[ModelSample],
        *,
        decisions: Sequence[DecisionRecord],
    ) -> None:
        if self.trouble:
            raise StoreError(self.trouble)
        self.rows.append((devices, models))
        self.decisions.extend(decisions)


def test_a_tick_puts_the_same_rows_into_ring_and_store() -> None:
    engine, store, recent = FakeEngine(), FakeStore(), Recent()
    sampler = Sampler(engine, store, recent=recent)
    engine.state = snapshot(1, (device(),), (model("digits", 5, 6),))
    engine.waiting = [Decision(7, NS_PER_S // 2, Kind.LOAD, Reason.QUEUE, model="digits")]
    sampler.tick()
    assert store.rows == [(recent.devices(), recent.models())]
    assert recent.models()[0].completed == 2
    assert recent.models()[0].at_ms == 1_001_000
    assert [record.at_ms for record in store.decisions] == [1_000_500]
    assert [mark.kind for mark in recent.marks()] == ["load"]


def test_a_tick_in_the_same_instant_adds_nothing() -> None:
    engine, store = FakeEngine(), FakeStore()
    Sampler(engine, store, recent=Recent()).tick()
    assert store.rows == []


def test_a_trouble_is_marked_once_and_sampling_goes_on() -> None:
    engine, store, recent = FakeEngine(), FakeStore(), Recent()
    sampler = Sampler(engine, store, recent=recent)
    store.trouble = "the disk is full"
    for second in (1, 2):
        engine.state = snapshot(second, (device(),))
        sampler.tick()
    assert [mark.text for mark in recent.marks()] == ["the disk is full"]
    assert recent.tick == 2
    store.trouble, engine.trouble = "", "the device is gone"
    engine.state = snapshot(3, (device(),))
    sampler.tick()
    assert [mark.text for mark in recent.marks()][-1] == "the device is gone"
    assert len(store.rows) == 1


def test_a_stop_keeps_what_happened_since_the_last_second() -> None:
    engine, store = FakeEngine(), FakeStore()
    sampler = Sampler(engine, store, recent=Recent())
    sampler.start()
    engine.state = snapshot(0.5, (device(),))
    sampler.stop()
    sampler.stop()
    assert len(store.rows) == 1


def test_a_keyframe_is_taken_at_the_start_and_where_a_pool_changes_its_size() -> None:
    kept: list[Keyframe] = []
    taker = KeyframeTaker(kept)
    for second, pool in ((0, 100), (1, 100), (2, 60), (3, 60), (61, 60)):
        state = snapshot(second, (device(pool_bytes=pool * MIB),))
        taker.see(state, at_ms=second * 1000)
    assert [keyframe.at_ms for keyframe in kept] == [0, 2000]
    taker.see(snapshot(62, (device(pool_bytes=60 * MIB),)), at_ms=62_000)
    assert [keyframe.at_ms for keyframe in kept] == [0, 2000, 62_000]


class OddStore(FakeStore):
    """Fail in a way that nobody foresaw, the first time."""

    def __init__(self) -> None:
        super().__init__()
        self.is_again = threading.Event()
        self.calls = 0

    def append(
        self,
        devices: Sequence[DeviceSample],
        models: Sequence[ModelSample],
        *,
        decisions: Sequence[DecisionRecord],
    ) -> None:
        self.calls += 1
        if self.calls == 1:
            raise TypeError("an odd number")
        super().append(devices, models, decisions=decisions)
        self.is_again.set()


class Ticking(FakeEngine):
    """Be an engine whose every state is a second later."""

    def snapshot(self) -> Snapshot:
        self.state = snapshot(self.state.at_ns / NS_PER_S + 1, (device(),))
        self.clock.move_to(self.state.at_ns)
        return self.state


def test_a_second_that_cannot_be_kept_is_not_the_last_one() -> None:
    store = OddStore()
    sampler = Sampler(Ticking(), store, recent=Recent())
    sampler.start()
    assert store.is_again.wait(30)
    sampler.stop()
