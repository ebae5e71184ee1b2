"""Reserve: its parts add up, never below 6 % and 1 GiB, and NCCL's buffers are counted."""

from __future__ import annotations

import pytest

from engine.drivers.policy_desk import check_device
from engine.errors import PolicyError
from engine.policy import DevicePolicy, Policy
from engine.reserve import (
    LARGE_LIBRARY_BYTES,
    SMALL_LIBRARY_BYTES,
    cpu_parts,
    cuda_parts,
    nccl_bytes,
    size_of,
)
from engine.spec import DeviceSpec
from engine.units import GIB, MIB


@pytest.mark.parametrize("gib", [4, 8, 16, 80, 141])
@pytest.mark.parametrize("library_bytes", [SMALL_LIBRARY_BYTES, LARGE_LIBRARY_BYTES])
def test_a_card_keeps_back_six_percent_and_one_gib_at_least(gib: int, library_bytes: int):
    parts = cuda_parts(gib * GIB, library_bytes=library_bytes)
    assert [part.name for part in parts] == ["context", "libraries", "slack"]
    assert size_of(parts) >= max(GIB, int(gib * GIB * 0.06))
    assert parts[1].size_bytes == 2 * library_bytes
    assert parts[2].size_bytes >= int(gib * GIB * 0.05)


def test_a_second_worker_takes_library_workspaces_of_its_own():
    one, two = (cuda_parts(80 * GIB, workers=n)[1].size_bytes for n in (1, 2))
    assert two == 2 * one


@pytest.mark.parametrize(("channels", "mib"), [(2, 18), (8, 74), (16, 147), (32, 294)])
def test_nccl_takes_what_its_documentation_says_per_connection(channels: int, mib: int):
    assert round(nccl_bytes(1, channels) / MIB) == mib
    assert nccl_bytes(0, channels) == nccl_bytes(4, 0) == 0


def test_nccl_is_added_to_the_default_and_a_value_that_was_set_counts_alone():
    part = {"nccl_connections": 2, "nccl_channels": 8}
    rules = Policy().replace(devices={"cuda:0": part}).compile()
    assert rules.reserve_of("cuda:0", GIB) == GIB + nccl_bytes(2, 8)
    assert rules.reserve_of("cuda:1", GIB) == GIB
    rules = Policy().replace(devices={"cuda:0": part | {"reserve_mib": 2048}}).compile()
    assert rules.reserve_of("cuda:0", GIB) == 2 * GIB
    rules = Policy().replace(devices={"cuda:0": {"reserve_mib": 1}}).compile()
    assert rules.reserve_of("cuda:0", GIB) == GIB


def test_buffers_that_leave_no_pool_are_refused_with_their_size():
    spec = DeviceSpec("cpu:0", "cpu", 200 * MIB, size_of(cpu_parts()), False, 1e9, 1e9)
    check_device(spec, DevicePolicy(nccl_connections=2, nccl_channels=2))
    with pytest.raises(PolicyError, match=r"16 channels takes 1176 MiB, found 132 MiB"):
        check_device(spec, DevicePolicy(nccl_connections=8, nccl_channels=16))
