"""Limits: how large a batch may be on a device, and what bound it."""

from __future__ import annotations

from engine.batching.lanes import Lane
from engine.decisions import Reason
from engine.profile import Profile
from engine.scheduler.books import DeviceBooks
from engine.scheduler.step import Step


def safe_items(step: Step, lane: Lane, *, device: DeviceBooks) -> int:
    """Return the largest batch that fits beside the model's weights alone; 0: none does.

    (pool - weights - fixed workspace) / workspace per item; a quota stands for a
    smaller pool.
    """
    profile = step.profile(lane, device)
    if profile is None:
        return 0
    room = device.pool.max_lease_bytes(profile.weight_bytes)
    quota = lane.rules.quota_bytes
    if quota is not None:
        room = min(room, quota - profile.weight_bytes)
    return profile.max_items(room)


def capacity(step: Step, lane: Lane, *, device: DeviceBooks) -> tuple[int, Reason]:
    """Return the most items that a batch may take on a device, and which limit that is."""
    profile = step.profile(lane, device)
    assert profile is not None, "a device without a profile is no candidate"
    items, bound = lane.rules.watermarks.high, Reason.HIGH
    safe = safe_items(step, lane, device=device)
    cap = lane.model.caps.get(device.spec.kind)
    if cap is not None:
        safe = min(safe, cap)
    if safe < items:
        items, bound = safe, Reason.MEMORY_CAP
        if lane.rules.quota_bytes is not None and safe == safe_items(step, lane, device=device):
            bound = Reason.QUOTA
    timely = _timely_items(profile, lane.rules.max_batch_ns)
    if timely is not None and timely < items:
        items, bound = timely, Reason.MAX_BATCH_MS
    return items, bound


def _timely_items(profile: Profile, max_batch_ns: int | None) -> int | None:
    if max_batch_ns is None or profile.latency.per_item_ns <= 0:
        return None
    return max(1, (max_batch_ns - profile.latency.fixed_ns) // profile.latency.per_item_ns)


def load_ns(step: Step, lane: Lane) -> int:
    """Return the expected time until some device holds the lane's model; 0 if one does.

    Used to start a load before the timeout, so that the wait overlaps it.
    """
    model = lane.key.model
    best: int | None = None
    for device in step.books.devices.values():
        if not device.is_open:
            continue
        if device.holds(model):
            return 0
        profile = step.profile(lane, device)
        if profile is not None:
            took = int(profile.weight_bytes / device.spec.load_bytes_per_s * 1e9)
            best = took if best is None else min(best, took)
    return best or 0
