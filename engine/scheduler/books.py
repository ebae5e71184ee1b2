"""The scheduler's books: all that the core remembers, as plain objects without behaviour."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from engine.batching.lanes import Lane, ModelBooks, RetryGroup, Taken
from engine.decisions import Kind, Reason
from engine.memory.demand import Demand
from engine.memory.device_pool import DevicePool
from engine.memory.holdings import Claim, Conversion, Lease, Move
from engine.profile import Profile
from engine.request import Request
from engine.rules import CompiledPolicy
from engine.spec import DeviceSpec, LaneKey


@dataclass(slots=True)
class Batch:
    """Hold a batch from the moment it gets its place on a device.

    Until it leaves it has room but no requests: those are taken from its lane
    at the last moment, so that late and urgent ones can still join.

    Attributes:
        capacity: Most items that it may take.
        bound: What kept the capacity from being larger.
        lease: None while its bytes are still being won.
        retry: The parts it must run again, apart from others; None: from the lane.
        is_whole: No request in it is split.
        expected_ns: Expected time on the device, once it runs.
    """

    id: int
    lane: Lane
    device: str
    capacity: int
    bound: Reason
    needed_bytes: int
    prepared_ns: int
    lease: Lease | None = None
    retry: RetryGroup | None = None
    parts: list[Taken] = field(default_factory=list)
    is_whole: bool = True
    items: int = 0
    started_ns: int = 0
    expected_ns: int = 0


@dataclass(slots=True)
class Reservation:
    """Hold a load, a lease or just a hole that waits for its bytes to be won.

    Attributes:
        change_id: Move that its device was told to do; 0: none.
    """

    id: int
    kind: Literal["load", "lease", "hole"]
    device: str
    model: str
    claim: Claim
    batch: Batch | None = None
    is_revoked: bool = False
    change_id: int = 0


@dataclass(slots=True)
class Change:
    """Hold a move or a conversion that a device's worker was told to do.

    Attributes:
        reservation: For whom; None: a resident gets its full precision back.
        scratch: Workspace of a conversion.
    """

    id: int
    device: str
    reservation: Reservation | None
    move: Move | None = None
    conversion: Conversion | None = None
    scratch: Lease | None = None


@dataclass(slots=True)
class Load:
    """Hold a load that its device's loader was told to do."""

    id: int
    device: str
    model: str
    size_bytes: int
    expected_ns: int


@dataclass(slots=True)
class Eviction:
    """Hold an eviction under way, and for which reservation; None: for nobody in particular."""

    id: int
    device: str
    model: str
    size_bytes: int
    reservation: Reservation | None


@dataclass(slots=True)
class DeviceBooks:
    """Hold one device: its pool, its two batch places, what its loader does.

    Attributes:
        warm: Lease that is kept although no batch has it, at a high watermark's size.
        debt_bytes: Moved bytes that the budget of moves has not paid off at `debt_at_ns`.
        victim_idle_ns: How long the last victim had been idle; None: nobody had to go.
    """

    spec: DeviceSpec
    serial: int
    pool: DevicePool
    running: Batch | None = None
    prepared: Batch | None = None
    reservations: dict[int, Reservation] = field(default_factory=dict)
    loads: dict[str, Load] = field(default_factory=dict)
    load_counts: dict[str, int] = field(default_factory=dict)
    loader_free_ns: int = 0
    busy_until_ns: int = 0
    busy_ns: int = 0
    is_called: bool = False
    is_draining: bool = False
    is_lost: bool = False
    truth_bytes: int = 0
    warm: Lease | None = None
    debt_bytes: int = 0
    debt_at_ns: int = 0
    moved_bytes: int = 0
    moves: int = 0
    conversions: int = 0
    evictions: int = 0
    victim_idle_ns: int | None = None

    @property
    def is_open(self) -> bool:
        """Return whether new work may be placed here."""
        return not (self.is_draining or self.is_lost)

    def holds(self, model: str) -> bool:
        """Return whether a batch of the model could run here without a load."""
        resident = self.pool.residents.get(model)
        return resident is not None and resident.is_open

    def is_winning(self, model: str) -> bool:
        """Return whether a load of the model is decided and not finished."""
        return model in self.loads or any(
            r.kind == "load" and r.model == model and not r.is_revoked
            for r in self.reservations.values()
        )


@dataclass(slots=True)
class Books:
    """Hold everything; a copy of this object is a copy of the core.

    Attributes:
        profiles: By (model, kind of device, item shape); shape () holds for all others.
        reduced: The same of lower precisions, with the precision as fourth part.
        demands: How often models were wanted lately.
        ready: Lanes that want a batch, by serial.
        wakes: Heap of (instant, serial of a lane) for timeouts.
        deadlines: Heap of (instant, request id).
        epoch: Counts changes of places and memory: a lane that found no place in
            an epoch needs no second look in the same one.
        virtual_ns: Start of service of the batch that left last, in virtual time.
    """

    policy: CompiledPolicy
    seed: int
    now_ns: int = 0
    devices: dict[str, DeviceBooks] = field(default_factory=dict)
    models: dict[str, ModelBooks] = field(default_factory=dict)
    lanes: dict[LaneKey, Lane] = field(default_factory=dict)
    lane_list: list[Lane] = field(default_factory=list)
    profiles: dict[tuple[str, str, tuple[int, ...]], Profile] = field(default_factory=dict)
    reduced: dict[tuple[str, str, tuple[int, ...], str], Profile] = field(default_factory=dict)
    demands: dict[str, Demand] = field(default_factory=dict)
    requests: dict[int, Request] = field(default_factory=dict)
    batches: dict[int, Batch] = field(default_factory=dict)
    loads: dict[int, Load] = field(default_factory=dict)
    evictions: dict[int, Eviction] = field(default_factory=dict)
    changes: dict[int, Change] = field(default_factory=dict)
    ready: dict[int, Lane] = field(default_factory=dict)
    wakes: list[tuple[int, int]] = field(default_factory=list)
    deadlines: list[tuple[int, int]] = field(default_factory=list)
    queued_bytes: int = 0
    epoch: int = 0
    next_id: int = 0
    next_decision: int = 0
    next_snapshot: int = 0
    turn: int = 0
    virtual_ns: int = 0
    wake_ns: int = 0
    is_paused: bool = False
    no_hole_events: int = 0
    decision_counts: dict[tuple[Kind, Reason], int] = field(default_factory=dict)
