"""Load status: how a load stands and what is kept of it, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.load.plan import LoadPlan
from engine.load.tally import LoadFigures
from engine.units import NS_PER_S, ms_to_ns, ns_to_ms

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}


@dataclass(frozen=True, slots=True)
class LoadStatus:
    """Show a load: what was asked, what was sent, what became of it.

    Attributes:
        offered: Arrivals so far, sent or dropped.
        slip_ms_p99: How late 99 % of the requests left at most.
        is_valid: The generator kept up.
        offered_hz: Arrivals per second since the first one.
        goodput_hz: Results per second within the target's SLO.
        latency_ms: p50, p90, p95, p99 and max, from intended arrival to result.
        scores: Means of the target's scores, by name.
        error: Text of the latest error; "" if there was none.
    """

    run_id: int
    plan: LoadPlan
    started_ms: int
    is_running: bool
    seconds: float
    offered: int
    sent: int
    dropped: int
    completed: int
    failed: int
    refused: int
    expired: int
    cancelled: int
    in_flight: int
    slip_ms_p99: float
    is_valid: bool
    offered_hz: float
    completed_hz: float
    goodput_hz: float
    latency_ms: Mapping[str, float]
    scores: Mapping[str, float]
    error: str

    def summary(self) -> dict[str, float]:
        """Return the figures that a run keeps, under plain names."""
        counts = ("offered", "sent", "dropped", "completed", "failed", "refused")
        more = ("expired", "cancelled", "offered_hz", "goodput_hz", "seconds", "slip_ms_p99")
        summary = {name: float(getattr(self, name)) for name in (*counts, *more)}
        summary |= {f"latency_ms_{name}": value for name, value in self.latency_ms.items()}
        return summary | {"is_valid": float(self.is_valid)} | dict(self.scores)


@dataclass(frozen=True, slots=True)
class Session:
    """Say which load it is: its run, its plan, and when it began, in wall time."""

    run_id: int
    plan: LoadPlan
    started_ms: int


def load_status(
    session: Session,
    figures: LoadFigures,
    *,
    is_running: bool,
    elapsed_ns: int,
    slo_ms: float,
) -> LoadStatus:
    """Return a load's status from its figures.

    Args:
        elapsed_ns: Since sending began, draining included; 0 while inputs are
            still prepared.
        slo_ms: Latency that counts as good.
    """
    latency = figures.latency
    seconds = elapsed_ns / NS_PER_S
    sending = min(seconds, session.plan.seconds or seconds)
    per_s = 1 / seconds if seconds else 0.0
    good = latency.share_below(ms_to_ns(slo_ms)) * latency.count
    found = {name: ns_to_ms(latency.percentile_ns(q)) for name, q in PERCENTILES.items()}
    return LoadStatus(
        run_id=session.run_id,
        plan=session.plan,
        started_ms=session.started_ms,
        is_running=is_running,
        seconds=seconds,
        offered=figures.offered,
        sent=figures.sent,
        dropped=figures.dropped,
        completed=figures.completed,
        failed=figures.failed,
        refused=figures.refused,
        expired=figures.expired,
        cancelled=figures.cancelled,
        in_flight=figures.in_flight,
        slip_ms_p99=ns_to_ms(figures.slip.percentile_ns(0.99)),
        is_valid=figures.is_valid,
        offered_hz=figures.offered / sending if sending else 0.0,
        completed_hz=figures.completed * per_s,
        goodput_hz=good * per_s,
        latency_ms={**found, "max": ns_to_ms(latency.max_ns)},
        scores=figures.scores,
        error=figures.error,
    )
