"""Pace: when the next request should leave, in an open or a closed loop, editable meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from engine.load.arrivals import ArrivalKind, endless_gaps
from engine.load.plan import LoadPlan
from engine.units import NS_PER_S

FAR_NS = 1 << 62
_KINDS: dict[str, ArrivalKind] = {
    "constant": "constant",
    "poisson": "poisson",
    "burst": "gamma",
}


class OpenPace:
    """Let requests leave at their intended arrivals, whatever became of those before.

    Attributes:
        next_ns: Intended arrival of the next request.
    """

    __slots__ = ("_gaps", "_mean_ns", "_plan", "next_ns")
    is_closed = False

    def __init__(self, plan: LoadPlan, start_ns: int) -> None:
        """Put the first arrival one gap after the start."""
        self._plan = plan
        self._gaps = _gaps(plan)
        self._mean_ns = NS_PER_S / plan.rate_hz
        self.next_ns = start_ns
        self.advance()

    def advance(self) -> None:
        """Go to the arrival after the next one."""
        self.next_ns += round(next(self._gaps) * self._mean_ns)

    def freed(self, at_ns: int) -> None:
        """Take no note of results: arrivals do not wait for them."""

    def edit(self, plan: LoadPlan, now_ns: int) -> None:
        """Follow another plan from now on; what is left of the present gap is rescaled.

        Arrivals that are overdue stay due: an edit does not forgive a slip.
        """
        old, self._plan = self._plan, plan
        if (old.kind, old.cv, old.seed) != (plan.kind, plan.cv, plan.seed):
            self._gaps = _gaps(plan)
        left_ns = self.next_ns - now_ns
        mean_ns = NS_PER_S / plan.rate_hz
        if left_ns > 0:
            self.next_ns = now_ns + round(left_ns * mean_ns / self._mean_ns)
        self._mean_ns = mean_ns


class ClosedPace:
    """Let a request leave when one of the clients has its last result."""

    __slots__ = ("_asking", "_clients", "_idle_ns")
    is_closed = True

    def __init__(self, plan: LoadPlan, start_ns: int) -> None:
        """Let all clients ask at the start."""
        self._clients = plan.clients
        self._idle_ns = [start_ns] * plan.clients
        self._asking = 0

    @property
    def next_ns(self) -> int:
        """Return since when the longest idle client wants to ask; far away if none is idle."""
        return self._idle_ns[0] if self._idle_ns else FAR_NS

    def advance(self) -> None:
        """Let the longest idle client ask."""
        heappop(self._idle_ns)
        self._asking += 1

    def freed(self, at_ns: int) -> None:
        """Let a client ask again from that instant; it leaves if it is one too many."""
        if not self._asking:
            return  # it asked for an earlier plan
        self._asking -= 1
        if self._asking + len(self._idle_ns) < self._clients:
            heappush(self._idle_ns, at_ns)

    def edit(self, plan: LoadPlan, now_ns: int) -> None:
        """Let clients come or go; those that wait for a result go when they have it."""
        self._clients = plan.clients
        while self._idle_ns and self._asking + len(self._idle_ns) > plan.clients:
            heappop(self._idle_ns)
        while self._asking + len(self._idle_ns) < plan.clients:
            heappush(self._idle_ns, now_ns)


Pace = OpenPace | ClosedPace


def make_pace(plan: LoadPlan, start_ns: int) -> Pace:
    """Return the pace of a plan that begins at that instant."""
    return ClosedPace(plan, start_ns) if plan.kind == "closed" else OpenPace(plan, start_ns)


def edited(pace: Pace, plan: LoadPlan, *, now_ns: int) -> Pace:
    """Return the pace that follows another plan from now on."""
    if pace.is_closed != (plan.kind == "closed"):
        return make_pace(plan, now_ns)
    pace.edit(plan, now_ns)
    return pace


def _gaps(plan: LoadPlan) -> Iterator[float]:
    return endless_gaps(_KINDS[plan.kind], seed=plan.seed, cv=plan.cv)
