"""Lanes: the queues whose requests may share a batch, in a total order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from engine.metrics import Counters, LatencyHistogram
from engine.request import FINAL, Request
from engine.rules import ModelRules
from engine.spec import LaneKey

Taken = tuple[Request, int, int]
"""A request in a batch: (request, index of its first item there, number of items)."""


def effective_class(priority_class: int, waited_ns: int, *, aging_ns: int) -> int:
    """Return the class after aging: one more urgent per `aging_ns` waited, at best 0."""
    return max(0, priority_class - waited_ns // aging_ns)


@dataclass(slots=True)
class RetryGroup:
    """Hold parts of a batch that failed: they run again, apart from all others.

    Attributes:
        budget: Runs left for finding the culprit among them.
    """

    parts: list[Taken]
    budget: int

    def alive(self) -> list[Taken]:
        """Return the parts whose requests nobody cancelled or failed meanwhile."""
        return [part for part in self.parts if part[0].state not in FINAL]

    def halves(self) -> tuple[RetryGroup, RetryGroup]:
        """Return the two halves, each with half of the budget that is left."""
        middle = len(self.parts) // 2
        budget = max(0, self.budget - 2)
        return (
            RetryGroup(self.parts[:middle], budget // 2),
            RetryGroup(self.parts[middle:], budget - budget // 2),
        )


@dataclass(slots=True)
class ModelBooks:
    """Hold one model: its rules, lanes, counters, and its share of the devices' time.

    Attributes:
        virtual_ns: Time it used, divided by its weight; the lowest goes first in a class.
        caps: Largest batch after an out-of-memory error, by kind of device.
        is_refusing: Its last submission was refused; the onset was recorded.
        is_on_disk: Its host copy is a mapped file: the host's budget has no room for it.
        sizes: Bytes of its packed weights by precision, as far as they are known.
        unconvertible: Precisions that a device failed to convert it to.
        overshoots: Batches that needed more workspace than their lease.
        measured_share: Measured share of its leases that its batches needed, lately; 0:
            not measured.
    """

    name: str
    serial: int
    rules: ModelRules
    lanes: list[Lane] = field(default_factory=list)
    counters: Counters = field(default_factory=Counters)
    latency: LatencyHistogram = field(default_factory=LatencyHistogram)
    queueing: LatencyHistogram = field(default_factory=LatencyHistogram)
    service: LatencyHistogram = field(default_factory=LatencyHistogram)
    queued_items: int = 0
    running_items: int = 0
    virtual_ns: int = 0
    weight_bytes: int = 0
    host_bytes: int = 0
    caps: dict[str, int] = field(default_factory=dict)
    is_refusing: bool = False
    is_on_disk: bool = False
    sizes: dict[str, int] = field(default_factory=dict)
    unconvertible: set[str] = field(default_factory=set)
    overshoots: int = 0
    measured_share: float = 0.0


@dataclass(slots=True)
class Lane:
    """Queue the requests of one model, item shape and dtype.

    Requests of a class stand in the order of their arrival; a batch takes the
    lowest effective class first. A request that was cancelled or expired
    stays in its place without items until it reaches the head: removing it
    from the middle would cost the length of the queue.

    Attributes:
        queued_items: Items that wait and are in no batch.
        claimed_items: Room for items in the batches prepared for this lane.
        retries: Groups of requests that failed together and run apart from others.
        assigned: Device that placement chose while its load is under way.
        armed_ns: Instant of the wake-up that is set for its timeout; 0: none.
        revocations: Times its prepared batch lost its place since it last ran.
        tried_epoch: Epoch of the books in which it found no place.
        expected_ns: Expected time of its prepared batch on the device.
        waits_patiently: A prepared batch of it may stay although its device is free.
        is_blocked: It waits for memory; said once per wait.
        room_wake_ns: Instant of the wake-up at which somebody may leave for it; 0: none.
        is_servable: Some device could run at least one item of it.
    """

    key: LaneKey
    serial: int
    model: ModelBooks
    classes: dict[int, deque[Request]] = field(default_factory=dict)
    queued_items: int = 0
    queued_requests: int = 0
    claimed_items: int = 0
    retries: deque[RetryGroup] = field(default_factory=deque)
    assigned: str = ""
    armed_ns: int = 0
    revocations: int = 0
    tried_epoch: int = -1
    expected_ns: int = 0
    waits_patiently: bool = False
    is_blocked: bool = False
    room_wake_ns: int = 0
    is_servable: bool = True

    @property
    def rules(self) -> ModelRules:
        """Return the rules of its model."""
        return self.model.rules

    def follow_rules(self) -> None:
        """Take note of what the policy says now; called whenever it changes."""
        self.waits_patiently = self.rules.watermarks.fill == "patient"

    def add(self, request: Request) -> None:
        """Let a request wait at the end of its class."""
        queue = self.classes.get(request.priority_class)
        if queue is None:
            queue = self.classes[request.priority_class] = deque()
        queue.append(request)
        self.queued_items += request.items - request.taken
        self.queued_requests += 1

    def forget(self, request: Request) -> int:
        """Stop counting a request that was cancelled or expired; return its waiting items."""
        items = request.items - request.taken
        if items:
            request.taken = request.items
            self.queued_items -= items
            self.queued_requests -= 1
        return items

    def head(self, now_ns: int, aging_ns: int) -> Request | None:
        """Return the request that goes next; None when nobody waits."""
        best: Request | None = None
        best_key = (0, 0)
        for queue in self.classes.values():
            _drop_forgotten(queue)
            if not queue:
                continue
            first = queue[0]
            waited = now_ns - first.arrival_ns
            key = (
                effective_class(first.priority_class, waited, aging_ns=aging_ns),
                first.arrival_ns,
            )
            if best is None or key < best_key:
                best, best_key = first, key
        return best

    def best_class(self, now_ns: int, aging_ns: int) -> int:
        """Return a class that none of its requests is more urgent than; cheap, not exact."""
        if self.retries:
            return 0
        oldest = self.oldest_ns()
        if oldest is None:
            return self.rules.priority_class
        return effective_class(min(self.classes), now_ns - oldest, aging_ns=aging_ns)

    def oldest_ns(self) -> int | None:
        """Return the earliest arrival among the waiting requests; None when nobody waits."""
        oldest: int | None = None
        for queue in self.classes.values():
            _drop_forgotten(queue)
            if queue and (oldest is None or queue[0].arrival_ns < oldest):
                oldest = queue[0].arrival_ns
        return oldest

    def take(self, items: int, now_ns: int, *, aging_ns: int) -> list[Taken]:
        """Take up to `items` items for a batch.

        The last request is split when it does not fit whole, so that a full
        batch is exactly full.

        Returns:
            (request, index of its first item, number of items), most urgent first.
        """
        taken: list[Taken] = []
        wanted = items
        is_single = len(self.classes) == 1
        while items > 0:
            queue = self._next_queue(now_ns, aging_ns)
            if queue is None:
                break
            items = self._take_from(queue, items, taken=taken, is_single=is_single)
        self.queued_items -= wanted - items
        return taken

    def _take_from(
        self, queue: deque[Request], items: int, *, taken: list[Taken], is_single: bool
    ) -> int:
        """Take from the head of a class, all that is wanted if there is no other class.

        Returns:
            Items still wanted.
        """
        while queue and items > 0:
            request = queue[0]
            first = request.taken
            count = request.items - first
            if count <= items:
                queue.popleft()
                if not count:
                    continue
                self.queued_requests -= 1
            else:
                count = items
            request.taken = first + count
            items -= count
            taken.append((request, first, count))
            if not is_single:
                break
        return items

    def _next_queue(self, now_ns: int, aging_ns: int) -> deque[Request] | None:
        if len(self.classes) == 1:
            queue = next(iter(self.classes.values()))
            _drop_forgotten(queue)
            return queue or None
        head = self.head(now_ns, aging_ns)
        return None if head is None else self.classes[head.priority_class]

    def waiting(self) -> Iterator[Request]:
        """Yield all requests that wait here, retries first."""
        for group in self.retries:
            yield from (request for request, _, _ in group.parts)
        for queue in self.classes.values():
            yield from (request for request in queue if request.taken < request.items)


def _drop_forgotten(queue: deque[Request]) -> None:
    while queue and queue[0].taken >= queue[0].items:
        queue.popleft()
