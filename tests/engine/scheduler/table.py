"""A core on a table: events by hand, effects to look at, devices that answer when told."""

from __future__ import annotations

from typing import TypeVar

from engine.decisions import Decision
from engine.effects import (
    CallWorker,
    Effect,
    EvictWeights,
    LoadWeights,
    PublishSnapshot,
    RejectRequests,
    ResolveRequests,
    RunBatch,
    WakeAt,
)
from engine.events import (
    BatchFailed,
    BatchFinished,
    DeviceAdded,
    Event,
    EvictFinished,
    FailureKind,
    LoadFinished,
    PolicyChanged,
    ProfileUpdated,
    SnapshotDue,
    Submitted,
    TimePassed,
    WorkerReady,
)
from engine.policy import Policy
from engine.profile import Latency, Profile, ProfileKey
from engine.request import Request
from engine.scheduler.core import EngineCore
from engine.snapshot import Snapshot
from engine.spec import DeviceSpec, LaneKey
from engine.units import MIB

MS = 1_000_000
E = TypeVar("E", bound=Effect)


class Table:
    """Drive a core event by event at instants that the test chooses."""

    def __init__(
        self, policy: Policy | None = None, *, devices: int = 1, pool_mib: int = 100
    ) -> None:
        """Add devices with addressed leases, 1 GB/s loads and that much pool each."""
        self.policy = policy or Policy()
        self.core = EngineCore(self.policy.compile())
        self.now_ns = 0
        self.log: list[Effect] = []
        self.requests: dict[int, Request] = {}
        self._next = 0
        self._wake_ns = 0
        for index in range(devices):
            spec = DeviceSpec(
                name=f"sim:{index}",
                kind="simulated",
                capacity_bytes=(pool_mib + 2) * MIB,
                reserve_bytes=0,
                addressed=True,
                load_bytes_per_s=1e9,
                move_bytes_per_s=1e10,
            )
            self.tell(DeviceAdded(spec))

    def model(
        self, name: str, *, weight_mib: int = 10, item_mib: int = 1, item_ms: int = 1
    ) -> LaneKey:
        """Let the core know a model whose batches take `item_ms` per item."""
        latency = Latency(0, 0, item_ms * MS)
        key = ProfileKey(name, "simulated")
        profile = Profile(key, weight_mib * MIB, 0, item_mib * MIB, latency)
        self.tell(ProfileUpdated(profile))
        return LaneKey(name, (1,), "float32")

    def reduced(self, name: str, *, weight_mib: int, scratch_mib: int = 1) -> None:
        """Let the core know a model's sizes at bf16 and int8: a half and a quarter."""
        for precision, share in (("bf16", 2), ("int8", 4)):
            key = ProfileKey(name, "simulated", precision)
            latency = Latency(0, 0, 2 * MS)
            size = weight_mib * MIB // share
            profile = Profile(key, size, scratch_mib * MIB, MIB, latency)
            self.tell(ProfileUpdated(profile))

    def tell(self, event: Event) -> list[Effect]:
        """Pass an event at the present instant; return and keep the effects."""
        effects = self.core.handle(event, self.now_ns)
        self.log += effects
        for effect in effects:
            if isinstance(effect, WakeAt):
                self._wake_ns = effect.at_ns
            if isinstance(effect, CallWorker):
                effects = effects + self.tell(WorkerReady(effect.device))
        return effects

    def at(self, ms: float) -> Table:
        """Let the clock stand at that millisecond, and wake the core if it asked for that."""
        self.now_ns = int(ms * MS)
        if self._wake_ns and self._wake_ns <= self.now_ns:
            self._wake_ns = 0
            self.tell(TimePassed())
        return self

    def submit(
        self,
        lane: LaneKey,
        *,
        items: int = 1,
        priority_class: int | None = None,
        deadline_ms: float | None = None,
    ) -> int:
        """Submit a request and return its id."""
        self._next += 1
        if priority_class is None:
            priority_class = self.policy.model(lane.model).priority_class
        deadline_ns = None if deadline_ms is None else int(deadline_ms * MS)
        request = Request(self._next, lane, items, items * 4, priority_class, 0, deadline_ns)
        self.requests[request.id] = request
        self.tell(Submitted(request))
        return request.id

    def apply(self, policy: Policy) -> None:
        """Put a policy in force."""
        self.policy = policy.model_copy(update={"version": self.policy.version + 1})
        self.tell(PolicyChanged(self.policy.compile(), "test", "test"))

    def take(self, kind: type[E]) -> list[E]:
        """Return the effects of a kind since they were last taken, and forget them."""
        found = [effect for effect in self.log if isinstance(effect, kind)]
        self.log = [effect for effect in self.log if not isinstance(effect, kind)]
        return found

    def finish_loads(self) -> list[LoadWeights]:
        """Let all evictions and loads that were ordered end now."""
        done: list[LoadWeights] = []
        while True:
            evictions, loads = self.take(EvictWeights), self.take(LoadWeights)
            for eviction in evictions:
                self.tell(EvictFinished(eviction.eviction_id, 0, eviction.size_bytes))
            for load in loads:
                self.tell(LoadFinished(load.load_id, 0, load.size_bytes))
            done += loads
            if not evictions and not loads:
                return done

    def batches(self) -> list[RunBatch]:
        """Return the batches that left since the last look."""
        return self.take(RunBatch)

    def finish(self, batch: RunBatch) -> None:
        """Let a batch end well."""
        self.tell(BatchFinished(batch.batch_id, 1))

    def fail(self, batch: RunBatch, failure: FailureKind = FailureKind.ERROR) -> None:
        """Let a batch end badly."""
        self.tell(BatchFailed(batch.batch_id, 1, failure, "ValueError: bad item"))

    def resolved(self) -> list[int]:
        """Return the ids of the requests that got results since the last look."""
        return [i for effect in self.take(ResolveRequests) for i in effect.request_ids]

    def rejected(self) -> list[tuple[int, str, str]]:
        """Return (id, outcome, reason) of the rejections since the last look."""
        return [
            (request_id, effect.outcome, effect.reason.value)
            for effect in self.take(RejectRequests)
            for request_id in effect.request_ids
        ]

    def reasons(self, kind: str) -> list[str]:
        """Return the reasons of the decisions of a kind since the last look."""
        kept = [e for e in self.log if isinstance(e, Decision)]
        self.log = [e for e in self.log if not isinstance(e, Decision)]
        return [d.reason.value for d in kept if d.kind == kind]

    def snapshot(self) -> Snapshot:
        """Return the engine as the core publishes it."""
        self.tell(SnapshotDue())
        return self.take(PublishSnapshot)[-1].snapshot
