"""Tests of a live engine on a real CPU device: weights move, shrink, leave and come back."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from engine.devices.cpu import CpuDevice
from engine.devices.weights import Images
from engine.drivers.clock import MonotonicClock
from engine.engine import Engine
from engine.errors import Failed
from engine.events import Command
from engine.policy import Policy
from engine.spec import Bucket, DeviceSpec, ModelSpec, Sample
from engine.units import MIB

WIDTH = 512
CYCLES = 1000
SETTLED = 50


def spec(name: str, layers: int) -> ModelSpec:
    """Describe a stack of linear layers, 1 MiB each, whose weights follow from its name."""

    def build() -> nn.Module:
        torch.manual_seed(sum(name.encode()))
        return nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(layers)))

    def inputs(seed: int) -> Sample:
        return Sample(np.random.default_rng(seed).random((1, WIDTH), np.float32))

    return ModelSpec(name, build, (Bucket((WIDTH,)),), inputs)


@pytest.fixture
def images(tmp_path: Path) -> Iterator[Images]:
    found = Images(tmp_path)
    yield found
    found.close()


def open_engine(images: Images, policy: Policy, *, pool_mib: int) -> Engine:
    """Return an engine on one CPU device with that pool."""
    device = DeviceSpec("cpu:0", "cpu", (pool_mib + 2) * MIB, 0, False, 4e9, 8e9)
    return Engine([CpuDevice(device, images)], images, policy=policy, clock=MonotonicClock())


def test_compaction_on_a_live_engine_leaves_outputs_bit_identical(images: Images):
    engine = open_engine(images, Policy().replace(default={"high": 1}), pool_mib=40)
    names, is_over = [f"m{n}" for n in range(6)], threading.Event()
    try:
        for n, name in enumerate(names):
            engine.add_model(spec(name, 2 + n))
        xs = {name: spec(name, 1).inputs(3).payload for name in names}
        first = {name: np.asarray(engine.infer(name, xs[name])) for name in names}
        for name in names[::2]:
            engine.command(Command.EVICT, author="ada", model=name)
        stays = names[1::2]
        wrong: list[str] = []

        def client() -> None:
            names_in_turn = itertools.cycle(stays)
            while not is_over.is_set():
                name = next(names_in_turn)
                if not np.array_equal(np.asarray(engine.infer(name, xs[name])), first[name]):
                    wrong.append(name)

        thread = threading.Thread(target=client)
        thread.start()
        chance = random.Random(1)
        for _ in range(400):
            engine.command(Command.EVICT, author="ada", model=chance.choice(names))
            engine.operator.compact(author="ada")
            engine.infer(name := chance.choice(names), xs[name])
        assert engine.snapshot().memory.devices[0].moves > 3
        is_over.set()
        thread.join()
        assert wrong == []
        again = {name: np.asarray(engine.infer(name, xs[name])) for name in names}
        assert all(np.array_equal(again[name], first[name]) for name in names)
    finally:
        is_over.set()
        engine.close()


def test_a_thousand_loads_and_evictions_leave_the_process_as_large_as_it_was(images: Images):
    engine = open_engine(images, Policy(), pool_mib=40)
    try:
        engine.add_model(spec("large", 16))
        x = spec("large", 16).inputs(0).payload
        sizes: list[int] = []
        for _ in range(CYCLES):
            engine.infer("large", x)
            engine.drain_decisions()  # as the sampler does once a second
            sizes.append(process_bytes())
            engine.command(Command.EVICT, author="ada", model="large")
        assert engine.snapshot().model("large").counters.loads == CYCLES
        settled = sizes[SETTLED]
        assert max(sizes[SETTLED:]) <= settled * 1.02
        assert min(sizes[SETTLED:]) >= settled * 0.98
    finally:
        engine.close()


def process_bytes() -> int:
    """Return what the process holds and the system may not take at will."""
    found = 0
    for line in Path("/proc/self/smaps_rollup").read_text(encoding="utf-8").splitlines():
        name, _, rest = line.partition(":")
        if name in ("Rss", "LazyFree"):
            found += int(rest.split()[0]) * 1024 * (1 if name == "Rss" else -1)
    return found


def test_weights_beyond_the_hosts_budget_are_loaded_from_their_file(images: Images):
    engine = open_engine(images, Policy().replace(memory={"host_mib": 3.0}), pool_mib=40)
    try:
        for name, layers in (("small", 2), ("large", 6)):
            engine.add_model(spec(name, layers))
        state = {m.name: m.is_on_disk for m in engine.snapshot().models}
        assert state == {"small": False, "large": True}
        x = spec("large", 6).inputs(0).payload
        first = np.asarray(engine.infer("large", x))
        free = Policy().replace(memory={"host_mib": None})
        version = engine.policy.version
        engine.apply(free, author="ada", reason="more memory", expected_version=version)
        assert not any(m.is_on_disk for m in engine.snapshot().models)
        engine.command(Command.EVICT, author="ada", model="large")
        assert np.array_equal(np.asarray(engine.infer("large", x)), first)
    finally:
        engine.close()


def test_memory_pressure_converts_a_model_that_may_be_and_both_are_served(images: Images):
    policy = Policy().replace(
        models={"a": {"precisions": ("fp32", "bf16")}},
        memory={
            "ladder": ("convert", "evict", "wait"),
            "min_residence_ms": 0.0,
            "restore_share": 1.0,
        },
    )
    engine = open_engine(images, policy, pool_mib=16)
    try:
        for name in "ab":
            engine.add_model(spec(name, 8))
        x = spec("a", 8).inputs(1).payload
        full = np.asarray(engine.infer("a", x))
        engine.infer("b", spec("b", 8).inputs(1).payload)
        residents = {r.model: r for r in engine.snapshot().memory.devices[0].residents}
        assert (residents["a"].precision, residents["b"].precision) == ("bf16", "fp32")
        found = np.asarray(engine.infer("a", x))
        change = np.linalg.norm(found - full) / np.linalg.norm(full)
        (profile,) = engine.lower_profiles()
        assert 0 < change < 0.02
        assert profile.output_change == pytest.approx(change, abs=0.02)
    finally:
        engine.close()


def test_a_model_that_cannot_be_read_refuses_its_requests_and_the_books_balance(
    images: Images,
):
    engine = open_engine(images, Policy().replace(memory={"host_mib": 0.0}), pool_mib=40)
    try:
        is_broken = False

        def build() -> nn.Module:
            if is_broken:
                raise OSError("the share is gone")
            return nn.Linear(WIDTH, WIDTH)

        engine.add_model(
            ModelSpec("a", build, (Bucket((WIDTH,)),), lambda _: spec("a", 1).inputs(0))
        )
        is_broken = True
        (path,) = (p for p in images._tier._files.glob("*.safetensors"))
        path.unlink()
        with pytest.raises(Failed, match="could not be loaded"):
            engine.infer("a", spec("a", 1).inputs(0).payload)
        state = engine.snapshot().memory.devices[0]
        assert state.free_bytes == state.pool_bytes
    finally:
        engine.close()
