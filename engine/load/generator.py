"""Generator: puts a plan's load on a running engine from its own threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from itertools import count, cycle
from queue import Empty, SimpleQueue

from engine.errors import Cancelled, EngineError, Expired, InputError, Refused
from engine.load.pace import FAR_NS, Pace, edited, make_pace
from engine.load.plan import LoadPlan
from engine.load.prepared import Inputs, Prepared, Score, prepare
from engine.load.tally import SLIP_LIMIT_NS, LoadFigures, Outcome, Tally
from engine.ports import Clock
from engine.units import NS_PER_MS, NS_PER_S

Submit = Callable[[object, int | None, float | None], Future[object]]
"""Send one request: (payload, class, deadline in ms) to its future; raises `Refused`."""

MAX_IN_FLIGHT = 20_000
"""Requests under way at most; an arrival beyond it is dropped and the load is invalid."""
LAST_WAIT_S = 2.0
"""Longest wait for our own threads, which have nothing long to do."""
LONGEST_WAIT_S = 3600.0
"""Some platforms cannot wait for longer in one call."""
MIN_RETRY_NS = NS_PER_MS
"""Shortest pause of a closed-loop client that was refused without a hint."""


@dataclass(frozen=True, slots=True)
class _Sent:
    """Hold what is known of a request that is under way."""

    serial: int
    prepared: Prepared
    intended_ns: int
    is_closed: bool


class Generator:
    """Send a plan's requests and count what becomes of them.

    The sender thread waits for the next arrival, or in a closed loop for a
    client whose result came, and submits. The collector thread scores the
    results, so that neither sending nor the engine waits for that. Latency
    counts from the intended arrival, however late the sender was.
    """

    def __init__(
        self,
        submit: Submit,
        inputs: Inputs,
        *,
        score: Score | None,
        clock: Clock,
    ) -> None:
        """Take note of what to call; `start` starts the threads.

        Args:
            inputs: Seed to a real input with its truth.
            score: (output, truth) to named figures; None: results are not judged.
        """
        self._submit = submit
        self._inputs = inputs
        self._score = score
        self._clock = clock
        self._lock = threading.Lock()
        self._tally = Tally()
        self._under_way: dict[int, Future[object]] = {}
        self._serials = count(1)
        self._inbox: SimpleQueue[LoadPlan | int | None] = SimpleQueue()
        self._results: SimpleQueue[tuple[_Sent, Future[object], int] | None] = SimpleQueue()
        self._must_stop = threading.Event()
        self._sender_is_done = threading.Event()
        self._is_done = threading.Event()
        self._plan: LoadPlan | None = None

    @property
    def plan(self) -> LoadPlan | None:
        """Return the plan in force; None before the start."""
        return self._plan

    @property
    def is_running(self) -> bool:
        """Return whether requests are being sent or are under way."""
        return self._plan is not None and not self._is_done.is_set()

    def start(self, plan: LoadPlan) -> None:
        """Prepare inputs and begin; called once."""
        assert self._plan is None, "a generator starts once"
        self._plan = plan
        for run, name in ((self._send_all, "sender"), (self._collect, "collector")):
            threading.Thread(target=run, name=f"millpond-load-{name}", daemon=True).start()

    def edit(self, plan: LoadPlan) -> None:
        """Follow another plan from now on; time goes on counting from the start.

        Raises:
            InputError: It has another target or another number of items per request.
        """
        old = self._plan
        assert old is not None, "what is edited was started"
        for name in ("target", "items"):
            found, wanted = getattr(plan, name), getattr(old, name)
            if found != wanted:
                raise InputError(f"{name}: found {found}, wanted {wanted}; stop and start anew")
        self._plan = plan
        self._inbox.put(plan)

    @property
    def in_flight(self) -> int:
        """Return how many requests are under way."""
        return self._tally.in_flight

    def figures(self) -> LoadFigures:
        """Return how the load stands now."""
        with self._lock:
            return self._tally.figures()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until all is sent and answered; return whether it is."""
        return self._is_done.wait(timeout_s)

    def stop(self, drain_s: float = 0.0) -> LoadFigures:
        """Send nothing more, wait a while for what is under way, cancel the rest.

        Args:
            drain_s: Longest wait for results.

        Returns:
            The final figures.
        """
        if self._plan is None:
            return self.figures()
        self._must_stop.set()
        self._inbox.put(None)
        self._sender_is_done.wait(LAST_WAIT_S)
        if not self._is_done.wait(drain_s):
            with self._lock:
                futures = list(self._under_way.values())
            for future in futures:
                future.cancel()
            self._is_done.wait(LAST_WAIT_S)
        return self.figures()

    def _send_all(self) -> None:
        """Be the sender: prepare, then send until the time is over or somebody stops it."""
        try:
            plan = self._plan
            assert plan is not None, "start sets the plan"
            pool = self._prepare(plan)
            if pool:
                self._send_until_end(plan, pool)
        except Exception as error:  # noqa: BLE001  a user's inputs may raise anything
            with self._lock:
                self._tally.note_error(f"{type(error).__name__}: {error}")
        finally:
            self._sender_is_done.set()
            self._results.put(None)

    def _prepare(self, plan: LoadPlan) -> list[Prepared]:
        pool: list[Prepared] = []
        for prepared in prepare(self._inputs, items=plan.items, seed=plan.seed):
            if self._must_stop.is_set():
                return []
            pool.append(prepared)
        return pool

    def _send_until_end(self, plan: LoadPlan, pool: list[Prepared]) -> None:
        """Send whatever is due; what is late at the end still leaves, within the limit."""
        start_ns = self._clock.now_ns()
        pace = make_pace(plan, start_ns)
        turn = cycle(pool)
        while not self._must_stop.is_set():
            end_ns = FAR_NS if plan.seconds is None else start_ns + int(plan.seconds * NS_PER_S)
            news = self._news(min(pace.next_ns, end_ns))
            now_ns = self._clock.now_ns()
            if isinstance(news, LoadPlan):
                plan, pace = news, edited(pace, news, now_ns=now_ns)
            elif news is not None:
                pace.freed(news)
            elif pace.next_ns <= min(now_ns, end_ns - 1) and now_ns < end_ns + SLIP_LIMIT_NS:
                self._send(plan, pace, prepared=next(turn))
            elif now_ns >= end_ns:
                self._drop_overdue(pace, end_ns)
                return

    def _news(self, until_ns: int) -> LoadPlan | int | None:
        """Return an edited plan, or when a client got its result; None: neither in time."""
        wait_s = (until_ns - self._clock.now_ns()) / NS_PER_S
        try:
            if wait_s <= 0:
                return self._inbox.get_nowait()
            return self._inbox.get(timeout=min(wait_s, LONGEST_WAIT_S))
        except Empty:
            return None

    def _send(self, plan: LoadPlan, pace: Pace, *, prepared: Prepared) -> None:
        intended_ns = pace.next_ns
        pace.advance()
        with self._lock:
            if self._tally.in_flight >= MAX_IN_FLIGHT:
                self._tally.dropped()
                return
            self._tally.sent(intended_ns, self._clock.now_ns())
        try:
            future = self._submit(prepared.payload, plan.priority_class, plan.deadline_ms)
        except EngineError as error:
            pace.freed(self._turned_away(error, intended_ns))
            return
        sent = _Sent(next(self._serials), prepared, intended_ns, pace.is_closed)
        with self._lock:
            self._under_way[sent.serial] = future
        future.add_done_callback(partial(self._take_result, sent))

    def _turned_away(self, error: EngineError, intended_ns: int) -> int:
        """Count a request that never got in; return when to try again."""
        is_refused = isinstance(error, Refused)
        outcome: Outcome = "refused" if is_refused else "failed"
        now_ns = self._clock.now_ns()
        with self._lock:
            self._tally.ended(outcome, intended_ns, now_ns=now_ns, error=str(error))
        pause_ns = int(error.retry_after_ms * NS_PER_MS) if isinstance(error, Refused) else 0
        return now_ns + max(MIN_RETRY_NS, pause_ns)

    def _drop_overdue(self, pace: Pace, end_ns: int) -> None:
        while not pace.is_closed and pace.next_ns < end_ns:
            pace.advance()
            with self._lock:
                self._tally.dropped()

    def _take_result(self, sent: _Sent, future: Future[object]) -> None:
        """Read the clock and pass the result on; runs on the thread that resolved it."""
        now_ns = self._clock.now_ns()
        self._results.put((sent, future, now_ns))
        if sent.is_closed:
            self._inbox.put(now_ns)

    def _collect(self) -> None:
        """Be the collector: count and score results until all that was sent is through."""
        while True:
            ended = self._results.get()
            if ended is not None:
                sent, future, now_ns = ended
                self._count(sent, future, now_ns=now_ns)
            if self._sender_is_done.is_set() and not self.in_flight:
                self._is_done.set()
                return

    def _count(self, sent: _Sent, future: Future[object], *, now_ns: int) -> None:
        outcome, error = _outcome(future)
        scores: Mapping[str, float] = {}
        if outcome == "completed" and self._score is not None:
            try:
                scores = sent.prepared.scores(future.result(), self._score)
            except Exception as trouble:  # noqa: BLE001  a model's score may raise anything
                error = f"score: {type(trouble).__name__}: {trouble}"
        with self._lock:
            del self._under_way[sent.serial]
            self._tally.ended(outcome, sent.intended_ns, now_ns=now_ns, error=error)
            self._tally.scored(scores)


def _outcome(future: Future[object]) -> tuple[Outcome, str]:
    """Return what became of a request, and the text of its error."""
    if future.cancelled():
        return "cancelled", ""
    error = future.exception()
    match error:
        case None:
            return "completed", ""
        case Expired():
            return "expired", str(error)
        case Cancelled():
            return "cancelled", str(error)
        case Refused():
            return "refused", str(error)
        case _:
            return "failed", str(error)
