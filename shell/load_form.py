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


def draw(station: Station, plan: LoadPlan) -> LoadPlan | None:
    """Draw the form, filled from a plan; return the new plan once it is sent and valid."""
    targets = [*station.pipelines, *station.engine.models]
    with st.form("form_load", border=False):
        first = st.columns(4)
        target = first[0].selectbox(
            "Target", targets, index=_index(targets, plan.target), key="load_target"
        )
        kind = first[1].selectbox(
            "Arrivals",
            list(KINDS),
            index=list(KINDS).index(plan.kind),
            format_func=lambda name: KINDS[name],
            key="load_kind",
            help="open loop: arrivals regardless of results; closed loop: clients that wait",
        )
        rate_hz = first[2].number_input(
            "Rate, req/s", min_value=0.01, value=float(plan.rate_hz or 1.0), key="load_rate"
        )
        cv = first[3].number_input(
            "Burstiness (CV)", min_value=0.1, value=float(plan.cv), key="load_cv"
        )
        second = st.columns(4, vertical_alignment="bottom")
        clients = second[0].number_input(
            "Clients (closed loop)", min_value=1, value=plan.clients, key="load_clients"
        )
        seconds = second[1].number_input(
            "Seconds (0: until stopped)",
            min_value=0.0,
            value=float(plan.seconds or 0),
            key="load_seconds",
        )
        seed = second[2].number_input("Seed", min_value=0, value=plan.seed, key="load_seed")
        is_sent = second[3].form_submit_button("Send this load", width="stretch")
    if not is_sent:
        return None
    try:
        return LoadPlan(
            target=str(target),
            kind=kind,
            rate_hz=rate_hz,
            cv=cv,
            clients=int(clients),
            seconds=seconds or None,
            seed=int(seed),
        )
    except InputError as error:
        st.error(str(error), icon=":material/error:")
        return None


def _index(targets: list[str], target: str) -> int:
    return targets.index(target) if target in targets else 0
