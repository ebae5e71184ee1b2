"""Time machine: where weights lay at an earlier instant, and what was decided on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from engine.decisions import Decision, Kind, Reason
from engine.memory.replay import ChangeKind, DeviceBlocks, WeightChange, replay, weights_of
from engine.snapshot import Snapshot
from engine.units import NS_PER_S
from storage.keyframes import LAST_MS, Keyframe
from storage.samples import DecisionRecord
from storage.store import Store

PERIOD_NS = 60 * NS_PER_S
KINDS = (Kind.LOAD, Kind.EVICT, Kind.MOVE, Kind.CONVERT, Kind.DEVICE)
SHOWN = (*KINDS, Kind.ROOM, Kind.POLICY, Kind.OPERATOR)
LIMIT = 100_000


@dataclass(frozen=True, slots=True)
class Moment:
    """Show the memory at an earlier instant.

    Attributes:
        devices: Weights and holes; leases are not kept.
        decisions: Since the keyframe, up to the instant, newest first.
        keyframe_ms: Instant of the keyframe that it was rebuilt from.
    """

    at_ms: int
    devices: tuple[DeviceBlocks, ...]
    decisions: tuple[DecisionRecord, ...]
    keyframe_ms: int


class KeyframeSink(Protocol):
    """Be where keyframes are kept."""

    def append(self, keyframe: Keyframe, /) -> None:
        """Keep it; returns at once."""
        ...


class KeyframeTaker:
    """Take a keyframe at the first snapshot, then one per minute, and one at the end.

    Also where a pool has become larger or smaller: no decision says where its
    fence stands.
    """

    def __init__(self, sink: KeyframeSink) -> None:
        """Keep them there."""
        self._sink = sink
        self._next_ns = 0
        self._sizes: list[tuple[str, int]] = []

    def see(self, snapshot: Snapshot, *, at_ms: int, is_last: bool = False) -> None:
        """Take a keyframe of this snapshot if it is time for one.

        Args:
            at_ms: Wall time of the snapshot.
        """
        sizes = [(device.name, device.pool_bytes) for device in snapshot.memory.devices]
        if snapshot.at_ns < self._next_ns and sizes == self._sizes and not is_last:
            return
        self._next_ns, self._sizes = snapshot.at_ns + PERIOD_NS, sizes
        devices = tuple(weights_of(device) for device in snapshot.memory.devices)
        self._sink.append(Keyframe(at_ms, snapshot.at_ns, devices))


class TimeMachine:
    """Rebuild earlier states of the memory from a store."""

    def __init__(self, store: Store) -> None:
        """Read from that store, which may be another process's."""
        self._store = store

    def times(self) -> Sequence[int]:
        """Return the instants of the keyframes in wall milliseconds, the oldest first."""
        return self._store.keyframes.times()

    def changes(self, start_ms: int, end_ms: int, *, limit: int = 400) -> tuple[int, ...]:
        """Return the instants at which something changed, the oldest first; the latest ones.

        The last keyframe before the window, or the first in it, is among them.
        """
        times = self._store.keyframes.times()
        records = self._store.decisions(start_ms, end_ms, limit=limit, kinds=KINDS)
        first = max((t for t in times if t <= start_ms), default=min(times, default=end_ms))
        found = {r.at_ms for r in records if change_of(r.decision) is not None}
        return tuple(sorted({t for t in found if t >= first} | ({first} & set(times))))

    def at(self, at_ms: int) -> Moment | None:
        """Return the memory at an instant; None: nothing is kept from before it."""
        keyframe = self._store.keyframes.before(at_ms)
        if keyframe is None:
            return None
        end_ms = min(at_ms, LAST_MS) + 1
        records = self._store.decisions(keyframe.at_ms, end_ms, limit=LIMIT, kinds=SHOWN)
        since = [r for r in records if r.decision.at_ns > keyframe.at_ns]
        changes = [c for r in reversed(since) if (c := change_of(r.decision)) is not None]
        return Moment(at_ms, replay(keyframe.devices, changes), tuple(since), keyframe.at_ms)


def change_of(decision: Decision) -> WeightChange | None:
    """Return what a decision changed of where weights lie; None: nothing."""
    if decision.kind not in KINDS:
        return None
    numbers = dict(decision.numbers)
    kind: ChangeKind
    if decision.kind is Kind.DEVICE:
        if decision.reason is not Reason.DEVICE_LOST:
            return None
        kind = "lost"
    elif decision.reason in (Reason.ERROR, Reason.MODEL_FAILED):
        kind = "undo"
    elif decision.kind is Kind.LOAD:
        kind = "load"
    elif decision.kind is Kind.EVICT:
        kind = "evict"
    else:
        kind = "move" if decision.kind is Kind.MOVE else "convert"
        if "to" not in numbers:
            return None
    offset = numbers.get("to", numbers.get("offset", 0))
    size = numbers.get("bytes", 0)
    return WeightChange(
        decision.at_ns,
        kind,
        decision.device,
        decision.model,
        decision.subject,
        int(offset),
        int(size),
    )
