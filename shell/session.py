"""Session: the only user of session state and of what pages share."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar, cast

import streamlit as st

from engine.policy import Policy
from ops import runtime
from ops.station import Station

T = TypeVar("T")
_SPECS: dict[str, tuple[int, object]] = {}
_SPECS_LOCK = threading.Lock()
MAX_SPECS = 256
WINDOWS = {"1 min": 60, "5 min": 300, "15 min": 900}
POINTS = 300
"""Of a line that is drawn anew each second; a longer one is drawn less often."""


def station() -> Station:
    """Return the station of this process; the shell has checked that it runs."""
    return runtime.get()


def known() -> list[str]:
    """Return all models that this station was told of, in an order that only grows.

    Those whose weights are missing count too, so that fetching them changes
    nobody's colour.
    """
    here = station()
    named = [spec.name for spec in here.models]
    return named + [name for name in here.engine.models if name not in named]


def editable() -> list[str]:
    """Return the names that can have a part in the policy."""
    here = station()
    return [*here.engine.models, *here.pipelines]


def cached(key: str, tick: int, *, build: Callable[[], T]) -> T:
    """Return charts as JSON, built once per second however many tabs look at them.

    Args:
        key: Everything that the chart depends on, besides the second.
        tick: The second.
    """
    with _SPECS_LOCK:
        found = _SPECS.get(key)
    if found is not None and found[0] == tick:
        return cast(T, found[1])
    spec = build()
    with _SPECS_LOCK:
        if len(_SPECS) >= MAX_SPECS:
            _SPECS.clear()
        _SPECS[key] = tick, spec
    return spec


def tick(seconds: int) -> int:
    """Return the count that tells when charts of so long a window are drawn anew."""
    return station().recent.tick // max(1, seconds // POINTS)


def author() -> str:
    """Return who edits: the user logged in, else the name set in the sidebar."""
    user = st.user.to_dict() if hasattr(st, "user") else {}
    name = user.get("name") or user.get("email") or st.session_state.get("author")
    return str(name or "operator")


def base_policy(form: str) -> Policy:
    """Return the policy that a form was filled from; it moves only on purpose."""
    key = f"base_{form}"
    if key not in st.session_state:
        st.session_state[key] = station().engine.policy
    return cast(Policy, st.session_state[key])


def rebase(form: str) -> None:
    """Fill a form anew from the policy in force; what was typed into it is dropped."""
    st.session_state[f"base_{form}"] = station().engine.policy
    st.session_state[f"fill_{form}"] = filled(form) + 1


def filled(form: str) -> int:
    """Return how often a form was filled; in its widgets' keys, so that they start anew."""
    return int(st.session_state.get(f"fill_{form}", 0))


def leave(name: str, message: object) -> None:
    """Keep something for the next run of the page."""
    st.session_state[f"left_{name}"] = message


def found(name: str) -> object:
    """Return, once, what the run before left; None if nothing."""
    return st.session_state.pop(f"left_{name}", None)


def has_changed(name: str, value: object) -> bool:
    """Return whether a value differs from the one at the last call; not at the first."""
    key = f"last_{name}"
    before = st.session_state.get(key, value)
    st.session_state[key] = value
    return bool(before != value)


def from_address(name: str, options: list[str], *, default: str) -> str:
    """Return a choice that the address holds, if it is one of the options."""
    wanted = str(st.query_params.get(name, default))
    return wanted if wanted in options else default


def window_seconds() -> int:
    """Draw the choice of the time window, kept in the address, and return its seconds."""
    options = list(WINDOWS)
    chosen = st.segmented_control(
        "Window",
        options,
        default=from_address("window", options, default="5 min"),
        required=True,
        key="window",
        label_visibility="collapsed",
    )
    name = str(chosen or "5 min")
    st.query_params["window"] = name
    return WINDOWS[name]
