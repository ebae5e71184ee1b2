"""Policy desk: one edit at a time is checked, stored and swapped in, as one version."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from engine.errors import PolicyError
from engine.policy import DevicePolicy, Policy
from engine.reserve import nccl_bytes
from engine.spec import DeviceSpec
from engine.units import MIB


class Applied(Protocol):
    """Take a new version."""

    def __call__(self, policy: Policy, *, author: str, reason: str) -> None:
        """Store it, or put it in force."""
        ...


class PolicyDesk:
    """Hold the policy in force and let one edit after another replace it.

    Attributes:
        policy: The version in force.
        store: Keeps a version before it is swapped in; may raise `StoreError`
            to refuse it. None: nothing is kept.
    """

    def __init__(
        self,
        policy: Policy,
        devices: Sequence[DeviceSpec],
        *,
        swap: Applied,
        ready: Callable[[Policy], None],
    ) -> None:
        """Start with a policy.

        Args:
            swap: Puts a version in force.
            ready: Finds out what a version needs to know; may refuse it.
        """
        self.policy = policy
        self.store: Applied | None = None
        self._specs = {spec.name: spec for spec in devices}
        self._swap = swap
        self._ready = ready
        self._lock = threading.Lock()

    def apply(self, policy: Policy, *, author: str, reason: str, expected_version: int) -> int:
        """Check, store and swap in an edit; see `Engine.apply`."""
        with self._lock:
            current = self.policy.version
            if expected_version != current:
                raise PolicyError(
                    f"policy: the edit is based on version {expected_version}, "
                    f"version {current} is in force; look at the difference and redo it"
                )
            self._check_devices(policy)
            self._ready(policy)
            new = policy.model_copy(update={"version": current + 1})
            new.compile()  # whatever cannot be put in force must not be stored either
            if self.store is not None:
                self.store(new, author=author, reason=reason)
            self._swap(new, author=author, reason=reason)
            self.policy = new
            return new.version

    def _check_devices(self, policy: Policy) -> None:
        for name, part in policy.devices.items():
            spec = self._specs.get(name)
            if spec is None:
                raise PolicyError(
                    f"devices.{name}: no such device; there are {', '.join(self._specs)}"
                )
            check_device(spec, part)


def check_device(spec: DeviceSpec, part: DevicePolicy) -> None:
    """Refuse what the arena, which was made at the start, cannot do.

    Raises:
        PolicyError: Says what was found and what to do.
    """
    name = f"devices.{spec.name}"
    if part.pool_mib is not None and part.pool_mib * MIB > spec.pool_bytes:
        raise PolicyError(
            f"{name}.pool_mib: found {part.pool_mib:g}, the arena was made "
            f"for {spec.pool_bytes / MIB:g}; restart with a larger device to grow it"
        )
    least, most = spec.reserve_bytes / MIB, spec.capacity_bytes / MIB - 4
    if part.reserve_mib is None:
        _check_nccl(spec, part, room_mib=most - least)
        return
    if not least <= part.reserve_mib <= most:
        raise PolicyError(
            f"{name}.reserve_mib: found {part.reserve_mib:g}, wanted {least:g} (what was set "
            f"aside when the arena was made) to {most:g}; restart to set aside less"
        )


def _check_nccl(spec: DeviceSpec, part: DevicePolicy, *, room_mib: float) -> None:
    wanted = nccl_bytes(part.nccl_connections, part.nccl_channels) / MIB
    if wanted > room_mib:
        raise PolicyError(
            f"devices.{spec.name}: NCCL with {part.nccl_connections} connections and "
            f"{part.nccl_channels} channels takes {wanted:g} MiB, found {room_mib:g} MiB "
            "beside the reserve; lower one of them"
        )
