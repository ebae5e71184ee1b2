"""Simulated: drives the core on virtual time, from a heap of events and a list of arrivals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha256
from heapq import heappop, heappush
from time import perf_counter

from engine.decisions import Decision
from engine.drivers.decision_log import DecisionLog
from engine.drivers.simulated_costs import Costs
from engine.drivers.simulation_report import Ended, Measures, Outcome
from engine.effects import (
    CallWorker,
    Effect,
    PublishSnapshot,
    RejectRequests,
    ResolveRequests,
    RunBatch,
    WakeAt,
)
from engine.events import (
    DeviceAdded,
    Event,
    HostCopyFinished,
    PolicyChanged,
    ProfileUpdated,
    SnapshotDue,
    Submitted,
    TimePassed,
    WorkerReady,
)
from engine.load.arrivals import arrivals_ns, draw_models, zipf_shares
from engine.load.scenario import Scenario
from engine.request import Request
from engine.scheduler.core import EngineCore
from engine.spec import LaneKey

FAR_NS = 1 << 62
ITEM_BYTES = 4
"""Payload of an item: scenarios do not say; the queue's limit in bytes is not their subject."""


def simulate(scenario: Scenario, *, write: Callable[[str], object] | None = None) -> Outcome:
    """Run a scenario through the same core as the live driver, as fast as it goes.

    Args:
        write: Takes the decision log in pieces of whole lines.
    """
    return Simulation(scenario, write=write).run()


class Simulation:
    """Let a scenario's time pass: devices, clock and callers are all made here.

    At one instant what ends comes first, in the order in which it was
    decided, then wake-ups, then arrivals.
    """

    def __init__(
        self, scenario: Scenario, *, write: Callable[[str], object] | None = None
    ) -> None:
        """Draw the arrivals; see `simulate`."""
        self._started_s = perf_counter()
        self._scenario = scenario
        self._core = EngineCore(scenario.policy.compile(), seed=scenario.seed)
        self._log = DecisionLog(write)
        self._costs = Costs(scenario.devices, scenario.profiles, seed=scenario.seed)
        self._measures = Measures(scenario)
        self._heap: list[tuple[int, int, Event]] = []
        self._pushed = 0
        self._wake_ns = FAR_NS
        self._now_ns = 0
        load = scenario.load
        self._arrivals = arrivals_ns(
            load.kind,
            rate_hz=load.rate_hz,
            until_ns=scenario.duration_ns,
            seed=scenario.seed,
            cv=load.cv,
        )
        count = len(self._arrivals)
        shares = zipf_shares(len(scenario.profiles), load.zipf)
        self._models = draw_models(shares, count=count, seed=scenario.seed)
        self._ended_ns: list[int] = [Ended.UNFINISHED] * count

    def run(self) -> Outcome:
        """Run it to its end; called once."""
        events = self._begin() + self._pass_time()
        return Outcome(
            scenario=self._scenario,
            arrivals_ns=self._arrivals,
            models=self._models,
            ended_ns=self._ended_ns,
            measures=self._measures,
            events=events,
            decision_log_sha256=self._log.close(),
            wall_s=perf_counter() - self._started_s,
        )

    def _begin(self) -> int:
        """Tell the core of the policy, all models on the host, then devices; count the events.

        The policy's own decision opens the log, so that the log says under
        which policy it was made. Devices come last: none looks at every model.
        """
        policy = self._scenario.policy
        digest = sha256(policy.model_dump_json().encode()).hexdigest()
        events: list[Event] = [
            PolicyChanged(policy.compile(), "scenario", f"document {digest[:16]}")
        ]
        for profile in self._scenario.profiles:
            events.append(HostCopyFinished(profile.key.model, 0, profile.weight_bytes))
            events.append(ProfileUpdated(profile))
        events += [DeviceAdded(device) for device in self._scenario.devices]
        for event in events:
            self._carry_out(self._core.handle(event, 0))
        self._push(self._measures.first_sample_ns, SnapshotDue())
        return len(events)

    def _pass_time(self) -> int:
        """Feed the core whatever comes next until the end; return how many events."""
        heap, handle, end_ns = self._heap, self._core.handle, self._scenario.duration_ns
        arrivals = self._submissions()
        arrival_ns, arrival = next(arrivals)
        time_passed = TimePassed()
        handled = 0
        while True:
            due_ns = heap[0][0] if heap else FAR_NS
            wake_ns = self._wake_ns
            if min(due_ns, wake_ns, arrival_ns) > end_ns:
                return handled
            event: Event
            if due_ns <= wake_ns and due_ns <= arrival_ns:
                now_ns, _, event = heappop(heap)
            elif wake_ns <= arrival_ns:
                now_ns, event = max(wake_ns, self._now_ns), time_passed
                self._wake_ns = FAR_NS
            else:
                now_ns, event = arrival_ns, arrival
                arrival_ns, arrival = next(arrivals)
            self._now_ns = now_ns
            handled += 1
            effects = handle(event, now_ns)
            if effects:
                self._carry_out(effects)

    def _submissions(self) -> Iterator[tuple[int, Submitted]]:
        """Yield every arrival with its instant; at last one that never comes."""
        rules = self._scenario.policy.compile().rules
        kinds = []
        for profile in self._scenario.profiles:
            model = profile.key.model
            lane, terms = LaneKey(model, (), "float32"), rules(model)
            kinds.append((lane, terms.priority_class, terms.deadline_ns))
        instants = enumerate(self._arrivals.tolist())
        for (index, at_ns), model_index in zip(instants, self._models.tolist(), strict=True):
            lane, level, wait_ns = kinds[model_index]
            deadline_ns = None if wait_ns is None else at_ns + wait_ns
            request = Request(index, lane, 1, ITEM_BYTES, level, at_ns, deadline_ns)
            yield at_ns, Submitted(request)
        yield FAR_NS, Submitted(Request(-1, LaneKey("", (), "float32"), 1, 0, 0, FAR_NS))

    def _push(self, at_ns: int, event: Event) -> None:
        self._pushed += 1
        heappush(self._heap, (at_ns, self._pushed, event))

    def _carry_out(self, effects: list[Effect]) -> None:
        """Do what the core decided, in order; each effect that takes time ends in an event."""
        for effect in effects:
            if isinstance(effect, Decision):
                self._log.add(effect)
            elif isinstance(effect, RunBatch):
                at_ns, event = self._costs.batch(effect, self._now_ns)
                self._measures.batch(effect, at_ns)
                self._push(at_ns, event)
            elif isinstance(effect, CallWorker):
                self._push(self._now_ns, WorkerReady(effect.device))
            elif isinstance(effect, ResolveRequests):
                ended_ns, now_ns = self._ended_ns, self._now_ns
                for request_id in effect.request_ids:
                    ended_ns[request_id] = now_ns
            elif isinstance(effect, WakeAt):
                self._wake_ns = effect.at_ns
            else:
                self._carry_out_rare(effect)

    def _carry_out_rare(self, effect: Effect) -> None:
        if isinstance(effect, RejectRequests):
            for request_id in effect.request_ids:
                self._ended_ns[request_id] = Ended[effect.outcome.upper()]
        elif isinstance(effect, PublishSnapshot):
            next_ns = self._measures.sample(effect.snapshot)
            if next_ns is not None:
                self._push(next_ns, SnapshotDue())
        else:
            common = Decision | ResolveRequests | WakeAt | CallWorker
            assert not isinstance(effect, common)
            at_ns, event = self._costs.other(effect, self._now_ns)
            self._measures.work(effect, at_ns)
            self._push(at_ns, event)
