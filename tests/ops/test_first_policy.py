"""First policy: the store's last, what the caller wants, or the defaults."""

from __future__ import annotations

from engine.policy import Policy
from engine.spec import DeviceSpec
from engine.units import MIB
from ops.first_policy import first_policy

CPU = DeviceSpec("cpu:0", "cpu", 110 * MIB, 10 * MIB, False, 1e9, 1e9)


def test_a_new_store_starts_with_the_defaults_and_keeps_them_as_version_0() -> None:
    start = first_policy(None, None, devices=[CPU])
    assert start.policy == Policy()
    assert start.reason


def test_the_last_version_is_in_force_again_and_needs_no_new_one() -> None:
    last = Policy(version=7).replace(default={"high": 4})
    start = first_policy(last, None, devices=[CPU])
    assert start.policy == last
    assert start.reason == ""
    assert (
        first_policy(last, last.model_copy(update={"version": 0}), devices=[CPU]).policy == last
    )


def test_what_the_caller_wants_becomes_the_next_version() -> None:
    start = first_policy(
        Policy(version=7), Policy().replace(default={"high": 4}), devices=[CPU]
    )
    assert (start.policy.version, start.policy.default.high) == (8, 4)
    assert start.reason


def test_parts_of_devices_that_are_gone_or_smaller_are_left_out() -> None:
    wide = {"pool_mib": 500.0}
    last = Policy(version=3).replace(devices={"cpu:9": wide, "cpu:0": wide})
    start = first_policy(last, None, devices=[CPU])
    assert dict(start.policy.devices) == {}
    assert start.policy.version == 4
    fits = Policy(version=3).replace(devices={"cpu:0": {"pool_mib": 50.0}})
    assert first_policy(fits, None, devices=[CPU]).policy == fits
