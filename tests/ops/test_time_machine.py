"""Tests of the memory time machine: a real station's past equals what it was."""

from __future__ import annotations

import time
import zlib
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from engine.events import Command
from engine.memory.replay import DeviceBlocks
from engine.memory.state import BlockState, DeviceState
from ops import Station
from ops.time_machine import TimeMachine
from storage.keyframes import Keyframe
from storage.store import Store

THREE = '''"""Three stacks of linear layers; each layer is 1 MiB."""
import numpy as np
from torch import nn

from engine.spec import Bucket, ModelSpec, Sample

WIDTH = 512


def stack(name, layers):
    def build():
        return nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(layers)))

    def inputs(seed):
        return Sample(np.zeros((1, WIDTH), np.float32))

    return ModelSpec(name, build, (Bucket((WIDTH,)),), inputs)


MODELS = [stack("one", 1), stack("two", 2), stack("three", 3)]
'''


def places(device: DeviceState | DeviceBlocks) -> list[tuple[str, int, int]]:
    return sorted((b.model, b.offset, b.size_bytes) for b in device.blocks if b.model)


def test_every_instant_of_a_run_is_rebuilt_as_it_was(tmp_path: Path):
    (tmp_path / "three.py").write_text(THREE)
    url = f"sqlite:///{tmp_path}/m.db"
    seen: list[tuple[int, list[tuple[str, int, int]]]] = []
    with Station.open(
        store=url, devices="cpu:1x200MiB", models=[str(tmp_path / "three.py")], policy=None
    ) as station:
        engine = station.engine

        def look() -> None:
            state = engine.snapshot()
            at_ms = (engine.start_wall_ns + state.at_ns) // 1_000_000
            seen.append((at_ms, places(state.memory.devices[0])))
            while (engine.start_wall_ns + engine.clock.now_ns()) // 1_000_000 == at_ms:
                pass  # the next change falls into another millisecond

        def run(name: str) -> None:
            engine.infer(name, engine.models[name].inputs(0).payload)
            look()

        look()
        run("one")
        run("two")
        engine.command(Command.EVICT, author="ada", model="one")
        run("three")  # its load comes after the eviction
        engine.operator.compact(author="ada")
        run("two")  # its batch comes after the move
        assert engine.snapshot().memory.devices[0].moves == 2
    with Store.open(url, read_only=True) as store:
        machine = TimeMachine(store)
        assert len(machine.times()) >= 2
        for at_ms, wanted in seen:
            moment = machine.at(at_ms)
            assert moment is not None
            assert places(moment.devices[0]) == wanted
        last = machine.at(seen[-1][0])
        assert last is not None
        assert {r.decision.kind.value for r in last.decisions} >= {"load", "evict", "move"}
        assert machine.at(machine.times()[0] - 1) is None


def test_a_store_of_the_first_release_gets_the_table_and_keeps_its_rows(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/old.db"
    with Store.open(url):
        pass
    raw = create_engine(url)
    with raw.begin() as connection:  # as the first release made it
        connection.execute(text("DROP TABLE keyframes"))
        connection.execute(text("UPDATE alembic_version SET version_num = '0001'"))
        connection.execute(
            text(
                "INSERT INTO policies VALUES (1, :now, 'ada', 'first', '{}', '[]')"
            ).bindparams(now=int(time.time() * 1000))
        )
    raw.dispose()
    with Store.open(url) as store:
        assert [p.author for p in store.policies()] == ["ada"]
        assert store.keyframes.times() == ()


@pytest.mark.parametrize("at_ms", [0, 10**13])
def test_an_empty_store_has_no_past(tmp_path: Path, at_ms: int):
    with Store.open(f"sqlite:///{tmp_path}/m.db") as store:
        assert TimeMachine(store).at(at_ms) is None


def test_a_damaged_keyframe_is_passed_over_for_the_one_before_it(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/m.db"
    devices = (DeviceBlocks("cpu:0", 4096, 0, (BlockState(512, 1024, "resident", "a"),)),)
    with Store.open(url) as store:
        for at_ms in (1000, 2000, 3000, 4000):
            store.keyframes.append(Keyframe(at_ms, at_ms * 1_000_000, devices))
    raw = create_engine(url)
    broken = (b"garbage", zlib.compress(b"{}"), zlib.compress(b"[1]"))
    with raw.begin() as connection:
        for at_ms, document in zip((2000, 3000, 4000), broken, strict=True):
            connection.execute(
                text("UPDATE keyframes SET document = :d WHERE at_ms = :t"),
                {"d": document, "t": at_ms},
            )
    raw.dispose()
    with Store.open(url) as store:
        for at_ms in (5000, 10**19):
            moment = TimeMachine(store).at(at_ms)
            assert moment is not None
            assert moment.keyframe_ms == 1000
            assert places(moment.devices[0]) == [("a", 512, 1024)]
