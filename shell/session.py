"""Session: the only user of session state and of what pages share."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar, cast

import streamlit as st

from ops import runtime
from ops.station import Station

T = TypeVar("T")
_SPECS: dict[str, tuple[int, object]] = {}
_SPECS_LOCK = threading.Lock()
MAX_SPECS = 256
WINDOWS = {"1 min": 60, "5 min": 300, "15 min": 900}


def station() -> Station:
    """Return the station of this process; the shell has checked that it runs."""
    return runtime.get()


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


def author() -> str:
    """Return who edits: the user logged in, else the name set in the sidebar."""
    user = st.user.to_dict() if hasattr(st, "user") else {}
    name = user.get("name") or user.get("email") or st.session_state.get("author")
    return str(name or "operator")


def base_version(form: str) -> int:
    """Return the policy version that a form was filled from; it moves only on purpose."""
    key = f"base_{form}"
    if key not in st.session_state:
        st.session_state[key] = station().engine.policy.version
    return int(st.session_state[key])


def rebase(form: str) -> None:
    """Fill a form anew from the policy in force."""
    st.session_state[f"base_{form}"] = station().engine.policy.version


def window_seconds() -> int:
    """Draw the choice of the time window, kept in the address, and return its seconds."""
    chosen = st.segmented_control(
        "Window",
        list(WINDOWS),
        default=_window_from_address(),
        key="window",
        label_visibility="collapsed",
    )
    name = str(chosen or "5 min")
    st.query_params["window"] = name
    return WINDOWS[name]


def _window_from_address() -> str:
    found = st.query_params.get("window", "5 min")
    return found if found in WINDOWS else "5 min"
