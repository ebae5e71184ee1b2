"""Load form: a form that returns a validated load plan."""

from __future__ import annotations

import streamlit as st

from engine.errors import InputError
from engine.load.plan import LoadPlan
from ops.station import Station

KINDS = {
    "constant": "constant",
    "poisson": "Poisson",
    "burst": "bursts (gamma)",
    "closed": "closed loop",
}
AS_POLICY = "policy"


def draw(station: Station, plan: LoadPlan, *, key: str, is_running: bool) -> LoadPlan | None:
    """Draw the form, filled from a plan; return the new plan once it is sent and valid.

    Args:
        key: Of what the form edits: another load starts with fields of its own.
        is_running: The plan is being sent: its target is fixed, the rest follows at once.
    """
    targets = [*station.pipelines, *station.engine.models]
    with st.form(f"form_{key}", border=False):
        first = st.columns(4)
        target = first[0].selectbox(
            "Target",
            targets,
            index=targets.index(plan.target) if plan.target in targets else 0,
            key=f"{key}_target",
            disabled=is_running,
        )
        kind = first[1].selectbox(
            "Arrivals",
            list(KINDS),
            index=list(KINDS).index(plan.kind),
            format_func=lambda name: KINDS[name],
            key=f"{key}_kind",
            help="Open loop (constant, Poisson, bursts): arrivals regardless of results. "
            "Closed loop: each client waits for its result before it asks again.",
        )
        rate_hz = first[2].number_input(
            "Rate, req/s (open loop)",
            min_value=0.001,
            value=float(plan.rate_hz),
            format="%g",
            key=f"{key}_rate",
        )
        clients = first[3].number_input(
            "Clients (closed loop)",
            min_value=1,
            max_value=4096,
            value=plan.clients,
            key=f"{key}_clients",
        )
        numbers = _numbers(plan, key)
        is_sent = st.form_submit_button(
            "Change the running load" if is_running else "Start this load",
            icon=":material/tune:" if is_running else ":material/play_arrow:",
            key=f"{key}_send",
        )
    if not is_sent:
        return None
    try:
        return LoadPlan(
            target=str(target), kind=kind, rate_hz=rate_hz, clients=int(clients), **numbers
        )
    except InputError as error:
        st.error(str(error), icon=":material/error:")
        return None


def _numbers(plan: LoadPlan, key: str) -> dict[str, int | float | None]:
    """Draw the fields that are seldom changed, and return what they hold."""
    columns = st.columns(6)
    cv = columns[0].number_input(
        "Burstiness (CV)",
        min_value=0.01,
        max_value=100.0,
        value=float(plan.cv),
        key=f"{key}_cv",
    )
    items = columns[1].number_input(
        "Items per request", min_value=1, max_value=65_536, value=plan.items, key=f"{key}_items"
    )
    seconds = columns[2].number_input(
        "Seconds",
        min_value=0.1,
        value=None if plan.seconds is None else float(plan.seconds),
        placeholder="no end",
        key=f"{key}_seconds",
    )
    deadline_ms = columns[3].number_input(
        "Deadline, ms",
        min_value=0.1,
        value=None if plan.deadline_ms is None else float(plan.deadline_ms),
        placeholder=AS_POLICY,
        help="Empty: as the policy says.",
        key=f"{key}_deadline",
    )
    priority_class = columns[4].number_input(
        "Class",
        min_value=0,
        max_value=9,
        value=plan.priority_class,
        placeholder=AS_POLICY,
        help="0 is the most urgent; empty: as the policy says.",
        key=f"{key}_class",
    )
    seed = columns[5].number_input("Seed", min_value=0, value=plan.seed, key=f"{key}_seed")
    return {
        "cv": cv,
        "items": items,
        "seconds": seconds,
        "deadline_ms": deadline_ms,
        "priority_class": priority_class,
        "seed": seed,
    }
