"""Discover: what a text of devices stands for, and what is said when it stands for nothing."""

from __future__ import annotations

import psutil
import pytest
import torch

from engine.devices.catalog import CARDS, PUBLISHED, published
from engine.devices.discover import open_devices, parse_devices
from engine.devices.weights import Images
from engine.errors import InputError, OutOfMemoryError
from engine.spec import DeviceSpec
from engine.units import GIB, MIB

HAS_CARD = torch.cuda.is_available()


def test_cpu_devices_share_a_quarter_of_the_memory_or_have_the_given_size() -> None:
    shared = parse_devices("cpu:2")
    assert [spec.name for spec in shared] == ["cpu:0", "cpu:1"]
    total = sum(spec.pool_bytes for spec in shared)
    assert total == pytest.approx(psutil.virtual_memory().total / 4, rel=0.01)
    sized = parse_devices("cpu:3x1.5GiB")
    assert [spec.pool_bytes for spec in sized] == [3 * GIB // 2] * 3
    assert all(spec.reserve_bytes > 0 and not spec.addressed for spec in sized)
    assert [spec.pool_bytes for spec in parse_devices("cpu:1x64MiB")] == [64 * MIB]


@pytest.mark.skipif(HAS_CARD, reason="auto means the cards")
def test_auto_is_a_cpu_device_per_physical_core_less_one_and_at_least_one() -> None:
    allowed = len(psutil.Process().cpu_affinity())
    cores = min(psutil.cpu_count(logical=False) or allowed, allowed)
    assert len(parse_devices("auto")) == max(1, cores - 1)
    assert parse_devices("cpu") == parse_devices("auto")


def test_simulated_cards_come_from_the_catalog_with_their_source() -> None:
    cards = parse_devices("sim:8xV100-16G")
    assert [spec.name for spec in cards] == [f"sim:{index}" for index in range(8)]
    assert {spec.kind for spec in cards} == {"simulated"}
    assert cards[0].capacity_bytes == 16 * 10**9
    assert cards[0].addressed
    assert "V100-16G" in cards[0].source
    for name in CARDS:
        (spec,) = parse_devices(f"sim:{name}")
        assert spec.pool_bytes > 0.8 * spec.capacity_bytes


@pytest.mark.parametrize(
    "text",
    [
        *("", "gpu", "auto:2", "cpu:0", "cpu:x", "cpu:2x", "cpu:2x1", "cpu:-1", "cpu:99999"),
        *("cpu:2x1GB", "cpu:1,2", "sim", "sim:", "sim:0xV100-16G"),
    ],
)
def test_a_text_that_is_not_understood_is_answered_by_what_is_accepted(text: str) -> None:
    with pytest.raises(InputError, match=r"wanted one of auto, cpu.*cuda:0,1.*V100-16G"):
        parse_devices(text)


def test_what_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match="V200: no such card; there are V100-16G"):
        parse_devices("sim:V200")
    with pytest.raises(InputError, match=r"16\.0 MiB at least"):
        parse_devices("cpu:1x1MiB")
    if not HAS_CARD:
        with pytest.raises(InputError, match="no CUDA device; use auto or cpu"):
            parse_devices("cuda:0")


def test_devices_are_opened_by_their_kind_and_all_or_none() -> None:
    images = Images()
    opened = open_devices([*parse_devices("cpu:1x64MiB"), *parse_devices("sim:T4-16G")], images)
    assert [device.spec.kind for device in opened] == ["cpu", "simulated"]
    for device in opened:
        device.close()
    too_large = DeviceSpec("cpu:1", "cpu", 1 << 62, 0, False, 1e9, 1e9)
    with pytest.raises(OutOfMemoryError):
        open_devices([*parse_devices("cpu:1x64MiB"), too_large], images)


def test_published_models_name_their_source_and_grow_with_the_batch() -> None:
    for name in PUBLISHED:
        profile = published(name)
        assert profile is not None
        assert "NVIDIA DeepLearningExamples" in profile.source
        assert profile.latency.at(64) > profile.latency.at(1)
    assert published("ranker") is None
