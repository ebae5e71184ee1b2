"""Policy desk: one edit at a time is checked, stored and swapped in, as one version."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol

from engine.errors import PolicyError
from engine.policy import Policy
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

    def __init__(self, policy: Policy, devices: Sequence[DeviceSpec], *, swap: Applied) -> None:
        """Start with a policy.

        Args:
            swap: Puts a version in force.
        """
        self.policy = policy
        self.store: Applied | None = None
        self._sizes = {spec.name: spec.pool_bytes for spec in devices}
        self._swap = swap
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
            new = policy.model_copy(update={"version": current + 1})
            if self.store is not None:
                self.store(new, author=author, reason=reason)
            self._swap(new, author=author, reason=reason)
            self.policy = new
            return new.version

    def _check_devices(self, policy: Policy) -> None:
        sizes = self._sizes
        for name, part in policy.devices.items():
            if name not in sizes:
                raise PolicyError(
                    f"devices.{name}: no such device; there are {', '.join(sizes)}"
                )
            if part.pool_mib is not None and part.pool_mib * MIB > sizes[name]:
                raise PolicyError(
                    f"devices.{name}.pool_mib: found {part.pool_mib:g}, the arena was made "
                    f"for {sizes[name] / MIB:g}; restart with a larger device to grow it"
                )
