"""Refiner: workspace as batches really needed it goes back into the profiles."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from engine.effects import RunBatch
from engine.events import Event, ProfileUpdated
from engine.profile import Profile, ProfileKey

SAMPLES = 32
ENOUGH = 8
SPARE = 1.05
SLACK = 0.9


@dataclass(slots=True)
class _Known:
    """Hold a profile as it is in force, and what the last batches needed of it."""

    profile: Profile
    shares: deque[float] = field(default_factory=lambda: deque(maxlen=SAMPLES))


class Refiner:
    """Correct planned workspaces by measured ones.

    One batch that needs more raises the plan at once: the next one could
    fail. Only several in a row that need clearly less lower it, to the
    largest of them with some to spare.
    """

    def __init__(self, tell: Callable[[Event], object]) -> None:
        """Know no profile yet.

        Args:
            tell: Passes an event to the core.
        """
        self._tell = tell
        self._known: dict[ProfileKey, _Known] = {}
        self._lock = threading.Lock()

    def know(self, profile: Profile) -> None:
        """Take note of a profile that came into force."""
        with self._lock:
            self._known[profile.key] = _Known(profile)

    def measured(self, kind: str, batch: RunBatch, *, peak_bytes: int) -> None:
        """Note what a batch at full precision needed; correct its profile if need be."""
        key = ProfileKey(batch.lane.model, kind, shape=batch.lane.shape)
        with self._lock:
            known = self._known.get(key)
            if known is None:
                return
            planned = known.profile.workspace_bytes(batch.items)
            known.shares.append(peak_bytes / max(1, planned))
            profile = _corrected(known)
            if profile is None:
                return
            self._known[key] = _Known(profile)
        self._tell(ProfileUpdated(profile))


def _corrected(known: _Known) -> Profile | None:
    """Return the profile with the workspace that batches need; None: it is right as it is."""
    largest = max(known.shares)
    if largest <= 1.0 and (len(known.shares) < ENOUGH or largest > SLACK):
        return None
    share = largest * SPARE
    profile = known.profile
    source = profile.source.partition("; workspace corrected")[0]
    return replace(
        profile,
        workspace_fixed_bytes=round(profile.workspace_fixed_bytes * share),
        workspace_item_bytes=max(1, round(profile.workspace_item_bytes * share)),
        source=f"{source}; workspace corrected by real batches to {share:.0%} of the plan",
    )
