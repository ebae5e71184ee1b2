"""EngineCore: the scheduler as a function of events and instants, without clock or thread."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Self, TypeVar, cast

from engine.effects import Effect, PublishSnapshot, WakeAt
from engine.events import (
    BatchFailed,
    BatchFinished,
    CancelRequested,
    ConvertFailed,
    ConvertFinished,
    DeviceAdded,
    DeviceLost,
    Event,
    EvictFailed,
    EvictFinished,
    HostCopyFailed,
    HostCopyFinished,
    LoadFailed,
    LoadFinished,
    MoveFailed,
    MoveFinished,
    OperatorCommand,
    PolicyChanged,
    ProfileUpdated,
    SnapshotDue,
    Submitted,
    TimePassed,
    TruthSampled,
    WorkerReady,
)
from engine.rules import CompiledPolicy
from engine.scheduler.books import Books
from engine.scheduler.changes import (
    convert_failed,
    convert_finished,
    move_failed,
    move_finished,
)
from engine.scheduler.claims import evict_finished
from engine.scheduler.dispatch import decide
from engine.scheduler.intake import cancel_requested, submitted, time_passed
from engine.scheduler.operate import (
    device_added,
    host_copy_failed,
    host_copy_finished,
    operator_command,
    policy_changed,
    profile_updated,
    truth_sampled,
)
from engine.scheduler.outcomes import (
    batch_failed,
    batch_finished,
    load_failed,
    load_finished,
    lose_device,
    worker_ready,
)
from engine.scheduler.publish import snapshot
from engine.scheduler.step import Step

E = TypeVar("E")
Handler = Callable[[Step, E], None]


@dataclass(frozen=True, slots=True)
class CoreState:
    """Hold a copy of a core in mid-life; opaque, to be given to `EngineCore.from_state`."""

    books: Books


class EngineCore:
    """Decide everything that the engine does, one event at a time.

    The same events at the same instants give the same effects, in every
    process; so a log of a live run replays, and a state taken in mid-log goes
    on as the original would.
    """

    __slots__ = ("_books", "_step")

    def __init__(self, policy: CompiledPolicy, *, seed: int = 0) -> None:
        """Start with no device and no model; both come as events."""
        self._books = Books(policy, seed)
        self._step = Step(self._books)

    def __repr__(self) -> str:
        """Show what matters at a glance."""
        books = self._books
        return (
            f"EngineCore({len(books.devices)} devices, {len(books.models)} models, "
            f"{len(books.requests)} requests, {len(books.ready)} lanes ready)"
        )

    def handle(self, event: Event, now_ns: int) -> list[Effect]:
        """Apply one event and return what the driver must do next, in order.

        Args:
            now_ns: Never before the last one.
        """
        books = self._books
        assert now_ns >= books.now_ns, "time never runs backwards"
        step = self._step
        books.now_ns = step.now_ns = now_ns
        step.effects = []
        step.is_dirty = False
        step.at_hand = ""
        _HANDLERS[type(event)](step, event)
        if step.is_dirty:
            decide(step)
        if books.wakes or books.deadlines:
            _set_wake_up(step)
        return step.effects

    def state(self) -> CoreState:
        """Return a copy of all that it remembers."""
        return CoreState(deepcopy(self._books))

    @classmethod
    def from_state(cls, state: CoreState) -> Self:
        """Return a core that goes on where the state was taken."""
        core = cls.__new__(cls)
        core._books = deepcopy(state.books)
        core._step = Step(core._books)
        return core


def _set_wake_up(step: Step) -> None:
    """Ask for a wake-up at the earliest timeout or deadline, unless one is set before it."""
    books = step.books
    next_ns = books.wakes[0][0] if books.wakes else 0
    if books.deadlines and (not next_ns or books.deadlines[0][0] < next_ns):
        next_ns = books.deadlines[0][0]
    if not books.wake_ns or next_ns < books.wake_ns:
        books.wake_ns = next_ns
        step.effects.append(WakeAt(next_ns))


def _time_passed(step: Step, event: TimePassed) -> None:
    time_passed(step)


def _snapshot_due(step: Step, event: SnapshotDue) -> None:
    step.effects.append(PublishSnapshot(snapshot(step)))


def _device_lost(step: Step, event: DeviceLost) -> None:
    lose_device(step, step.books.devices[event.device], message=event.message)


def _evict_failed(step: Step, event: EvictFailed) -> None:
    eviction = step.books.evictions.get(event.eviction_id)
    if eviction is not None:
        lose_device(step, step.books.devices[eviction.device], message=event.message)


def _table() -> dict[type, Callable[[Step, Event], None]]:
    """Return who handles what; a table, because a chain of cases costs time per request."""
    typed: dict[type, object] = {
        Submitted: submitted,
        CancelRequested: cancel_requested,
        WorkerReady: worker_ready,
        BatchFinished: batch_finished,
        BatchFailed: batch_failed,
        LoadFinished: load_finished,
        LoadFailed: load_failed,
        EvictFinished: evict_finished,
        EvictFailed: _evict_failed,
        HostCopyFinished: host_copy_finished,
        HostCopyFailed: host_copy_failed,
        ProfileUpdated: profile_updated,
        TruthSampled: truth_sampled,
        PolicyChanged: policy_changed,
        OperatorCommand: operator_command,
        DeviceAdded: device_added,
        DeviceLost: _device_lost,
        MoveFinished: move_finished,
        MoveFailed: move_failed,
        ConvertFinished: convert_finished,
        ConvertFailed: convert_failed,
        TimePassed: _time_passed,
        SnapshotDue: _snapshot_due,
    }
    # Each function takes the very event type that it stands beside.
    return cast(dict[type, Callable[[Step, Event], None]], typed)


_HANDLERS = _table()
