"""Stock: the models of an engine, built once on the host, and what the core knows of them."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from engine.drivers.inputs import Inputs, check_models
from engine.drivers.live import LiveDriver
from engine.events import Event, HostCopyFailed, HostCopyFinished, ProfileUpdated
from engine.policy import Policy
from engine.ports import HostCopy, ModelImages
from engine.profile import Profile
from engine.rules import PRECISIONS
from engine.spec import ModelSpec
from engine.units import MIB


class Stock:
    """Build models on the host and tell the core their sizes and latency."""

    def __init__(
        self,
        images: ModelImages,
        inputs: Inputs,
        *,
        driver: LiveDriver,
        kinds: Sequence[str],
    ) -> None:
        """Start empty.

        Args:
            kinds: Kinds of device that there are.
        """
        self._images = images
        self._inputs = inputs
        self._driver = driver
        self._kinds = kinds
        self._lower: dict[tuple[str, str], tuple[Profile, ...]] = {}
        self._lock = threading.Lock()

    def add(self, spec: ModelSpec, policy: Policy) -> None:
        """Build a model; see `Engine.add_model`."""
        check_models(self._inputs.specs, spec.name)
        driver = self._driver
        image = self._images.add(spec, self._kinds)
        driver.handle(HostCopyFinished(spec.name, image.build_ns, image.size_bytes))
        for profile in image.profiles:
            driver.refiner.know(profile)
        self._tell(image.profiles)
        self._inputs.specs[spec.name] = spec
        self.learn(policy)
        self.follow(policy)

    def learn(self, policy: Policy) -> None:
        """Find out how models do at the lower precisions that a policy allows; blocks.

        Raises:
            InputError: One of them cannot be held at one; nothing changed for it.
        """
        allowed = [
            (name, precision)
            for name in list(self._inputs.specs)
            for precision in policy.model(name).precisions
            if precision != PRECISIONS[0]
        ]
        with self._lock:
            for key in allowed:
                if key not in self._lower:
                    self._lower[key] = tuple(self._images.lower(*key).profiles)
                    self._tell(self._lower[key])

    def follow(self, policy: Policy) -> None:
        """Keep as much of the weights in host memory as a policy allows; blocks."""
        host_mib = policy.memory.host_mib
        budget = None if host_mib is None else int(host_mib * MIB)
        with self._lock:
            for copy in self._images.set_host_budget(budget):
                self._driver.handle(_host_event(copy))

    def _tell(self, profiles: Sequence[Profile]) -> None:
        for profile in profiles:
            self._driver.handle(ProfileUpdated(profile))

    def lower(self) -> tuple[Profile, ...]:
        """Return the profiles of all lower precisions that were found out."""
        with self._lock:
            return tuple(p for profiles in self._lower.values() for p in profiles)


def _host_event(copy: HostCopy) -> Event:
    if copy.trouble:
        return HostCopyFailed(copy.model, copy.took_ns, copy.trouble)
    return HostCopyFinished(copy.model, copy.took_ns, copy.size_bytes, copy.is_on_disk)
