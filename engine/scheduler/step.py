"""Step: one call of the core - the books, the instant, and the effects that it collects."""

from __future__ import annotations

from typing import TypedDict, Unpack

from engine.batching.lanes import Lane, effective_class
from engine.decisions import Decision, Kind, Number, Reason
from engine.effects import Effect, RejectRequests
from engine.profile import Profile
from engine.request import Request, RequestStep
from engine.rules import PRECISIONS
from engine.scheduler.books import Books, DeviceBooks

FULL = PRECISIONS[0]
Urgency = tuple[int, int, int, int]
"""The total order of lanes: (effective class, virtual time, oldest arrival, serial)."""

LAST: Urgency = (99, 0, 0, 0)
BY_HAND: Urgency = (0, 0, 0, -1)
"""Where an operator's order stands in the order of all: before every request."""


class About(TypedDict, total=False):
    """Say which model and device a decision is about, as far as it is about one."""

    model: str
    device: str


class Step:
    """Collect what one event leads to, in order.

    Attributes:
        at_hand: Device whose worker waits for the answer to this very event.
    """

    __slots__ = ("at_hand", "books", "effects", "is_dirty", "now_ns")

    def __init__(self, books: Books) -> None:
        """Work on these books; the core sets the instant and empties the effects."""
        self.books = books
        self.now_ns = books.now_ns
        self.effects: list[Effect] = []
        self.is_dirty = False
        self.at_hand = ""

    def changed(self) -> None:
        """Take note that places or memory changed: lanes may look again."""
        self.books.epoch += 1
        self.is_dirty = True

    def new_id(self) -> int:
        """Return the next id; batches, loads and evictions share one count."""
        self.books.next_id += 1
        return self.books.next_id

    def decide(
        self,
        kind: Kind,
        reason: Reason,
        *,
        subject: int | None = None,
        numbers: tuple[tuple[str, Number], ...] = (),
        **about: Unpack[About],
    ) -> None:
        """Record a decision."""
        model, device = about.get("model", ""), about.get("device", "")
        books = self.books
        decision = Decision(
            books.next_decision, self.now_ns, kind, reason, model, device, subject, numbers
        )
        books.next_decision += 1
        key = (kind, reason)
        books.decision_counts[key] = books.decision_counts.get(key, 0) + 1
        self.effects.append(decision)

    def profile(self, lane: Lane, device: DeviceBooks) -> Profile | None:
        """Return what is known of a lane's model on a device; None: it cannot run there."""
        profiles = self.books.profiles
        model, kind = lane.key.model, device.spec.kind
        resident = device.pool.residents.get(model)
        if resident is not None and resident.precision != FULL:
            return self.profile_at(lane, device, precision=resident.precision)
        exact = profiles.get((model, kind, lane.key.shape))
        return exact or profiles.get((model, kind, ()))

    def profile_at(self, lane: Lane, device: DeviceBooks, *, precision: str) -> Profile | None:
        """Return what is known of a lane's model at a lower precision."""
        reduced = self.books.reduced
        model, kind = lane.key.model, device.spec.kind
        exact = reduced.get((model, kind, lane.key.shape, precision))
        return exact or reduced.get((model, kind, (), precision))

    def urgency(self, lane: Lane) -> Urgency:
        """Return a lane's place in the order of all; an empty lane comes last."""
        if lane.retries:
            first = lane.retries[0].parts[0][0]
            return self._key(lane, first)
        head = lane.head(self.now_ns, self.books.policy.aging_ns)
        return LAST if head is None else self._key(lane, head)

    def _key(self, lane: Lane, request: Request) -> Urgency:
        waited = self.now_ns - request.arrival_ns
        level = effective_class(
            request.priority_class, waited, aging_ns=self.books.policy.aging_ns
        )
        virtual = lane.model.virtual_ns
        return level, virtual, request.arrival_ns, lane.serial

    def model_urgency(self, model: str) -> Urgency:
        """Return the place in the order of a model's most urgent lane."""
        books = self.books.models[model]
        if not books.queued_items:
            return LAST
        return min((self.urgency(lane) for lane in books.lanes), default=LAST)

    def reject(
        self, request: Request, step: RequestStep, *, reason: Reason, message: str
    ) -> None:
        """End a request without a result and tell its caller why."""
        request.step(step)
        self.books.requests.pop(request.id, None)
        counters = self.books.models[request.lane.model].counters
        match step:
            case RequestStep.FAIL:
                counters.failed += 1
            case RequestStep.EXPIRE:
                counters.expired += 1
            case RequestStep.CANCEL:
                counters.cancelled += 1
            case _:
                raise AssertionError(f"{step} does not reject a request")
        outcome = request.state.value
        self.effects.append(RejectRequests((request.id,), outcome, reason, message))

    def leave_queue(self, request: Request) -> None:
        """Take a waiting request's items out of its lane and out of the sums."""
        lane = self.books.lanes[request.lane]
        items = lane.forget(request)
        self.books.models[request.lane.model].queued_items -= items
        if items:
            self.books.queued_bytes -= request.size_bytes
