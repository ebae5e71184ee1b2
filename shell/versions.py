"""Versions: the policies that were in force, who put them there and why, and the way back."""

from __future__ import annotations

import time

import streamlit as st

from engine.errors import EngineError
from shell import differences, session, tables

FORM = "versions"
LIMIT = 200


def draw() -> None:
    """Draw the versions, and the choice of one to compare with and to return to."""
    station = session.station()
    records = station.store.policies(limit=LIMIT)
    current = station.engine.policy
    note = session.found(FORM)
    st.markdown("**Policy versions** :gray[newest first]")
    if isinstance(note, str):
        st.error(note, icon=":material/error:")
    elif note is not None:
        st.toast(f"Policy version {note} is in force", icon=":material/check:")
    tables.draw(
        [
            {
                "version": record.version,
                "since": time.strftime("%d %b %H:%M:%S", time.localtime(record.at_ms / 1000)),
                "author": record.author,
                "reason": record.reason,
                "changed": ", ".join(f"{f} {a} → {b}" for f, a, b in record.diff[:4]),
            }
            for record in records
        ],
        "No version is stored yet: the defaults are in force.",
    )
    older = [record.version for record in records if record.version != current.version]
    if not older:
        return
    left, right = st.columns([2, 3], vertical_alignment="bottom")
    version = left.selectbox("Compare with version", older, key="versions_version")
    right.button(
        f"Put version {version} in force again",
        key=f"versions_back_{version}_{current.version}",
        icon=":material/undo:",
        on_click=go_back,
        args=(version, current.version),
    )
    try:
        chosen = station.store.policy(version)
    except EngineError as error:
        st.error(str(error), icon=":material/error:")
        return
    titles = {f"version {version}": chosen, f"version {current.version}, in force": current}
    tables.draw(differences.between(titles, session.editable()), "They say the same.")


def go_back(version: int, current: int) -> None:
    """Apply an old version's settings as a new one, unless somebody else was faster."""
    station = session.station()
    try:
        made = station.apply(
            station.store.policy(version),
            author=session.author(),
            reason=f"back to version {version}",
            expected_version=current,
        )
    except EngineError as error:
        session.leave(FORM, str(error))
        return
    session.leave(FORM, made)
