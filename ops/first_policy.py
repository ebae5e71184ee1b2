"""First policy: which policy a station starts under, fitted to the devices that are there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.drivers.policy_desk import check_device
from engine.errors import PolicyError
from engine.policy import DevicePolicy, Policy
from engine.spec import DeviceSpec


@dataclass(frozen=True, slots=True)
class Start:
    """Hold the policy to start under; `reason` is "" if it is stored already."""

    policy: Policy
    reason: str


def first_policy(
    last: Policy | None, wanted: Policy | None, *, devices: Sequence[DeviceSpec]
) -> Start:
    """Return the policy that a station starts under.

    What the caller wants, else the store's last version, else the defaults.
    Whatever is new becomes the next version, so that every version that was
    ever in force can be looked up.

    Args:
        last: The store's last version; None if it has none.
        wanted: What the caller gave; None: nothing.
    """
    policy, reason = last or Policy(), "" if last else "defaults of a new store"
    if wanted is not None and (last is None or last.diff(wanted)):
        policy, reason = wanted, "given at the start"
    fitted = _fitted(policy, devices)
    if fitted is not policy:
        policy, reason = fitted, "devices have changed: parts of absent ones are left out"
    if not reason:
        return Start(policy, "")
    version = last.version + 1 if last else policy.version
    return Start(policy.model_copy(update={"version": version}), reason)


def _fits(part: DevicePolicy, spec: DeviceSpec) -> bool:
    try:
        check_device(spec, part)
    except PolicyError:
        return False
    return True


def _fitted(policy: Policy, devices: Sequence[DeviceSpec]) -> Policy:
    """Leave out parts of devices that are not there, or that are smaller now."""
    specs = {spec.name: spec for spec in devices}
    kept = {
        name: part
        for name, part in policy.devices.items()
        if name in specs and _fits(part, specs[name])
    }
    if len(kept) == len(policy.devices):
        return policy
    return policy.model_copy(update={"devices": kept})
