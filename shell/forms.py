"""Forms: what an operator edits becomes one validated policy, applied once, or a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from engine.errors import EngineError, PolicyError
from engine.policy import Policy
from shell import session

Diff = Sequence[tuple[str, object, object]]


def show_diff(diff: Diff) -> None:
    """Draw what would change, field by field."""
    rows = [{"field": f, "now": _text(a), "new": _text(b)} for f, a, b in diff]
    st.dataframe(pd.DataFrame(rows), hide_index=True, height="content")


def _text(value: object) -> str:
    return "–" if value is None else str(value)


def apply_edit(form: str, changed: Policy, *, reason: str) -> None:
    """Apply an edit, or show why not; somebody else's version is never overwritten.

    Args:
        form: Names the form, which remembers the version that it was filled from.
        changed: The whole policy as edited.
    """
    station = session.station()
    try:
        version = station.apply(
            changed,
            author=session.author(),
            reason=reason or f"edited on the {form} page",
            expected_version=session.base_version(form),
        )
    except PolicyError as error:
        st.error(str(error), icon=":material/sync_problem:")
        current = station.engine.policy
        if current.version != session.base_version(form):
            st.caption("The policy in force differs from your edit in:")
            show_diff(current.diff(changed))
        return
    except EngineError as error:
        st.error(str(error), icon=":material/error:")
        return
    session.rebase(form)
    st.session_state[f"applied_{form}"] = version
    st.rerun()


def applied_note(form: str) -> None:
    """Say once which version an edit became."""
    version = st.session_state.pop(f"applied_{form}", None)
    if version is not None:
        st.toast(f"Policy version {version} is in force", icon=":material/check:")


def stale_note(form: str) -> None:
    """Say that the policy moved on since the form was filled, and offer to fill it anew."""
    current = session.station().engine.policy
    base = session.base_version(form)
    if current.version == base:
        return
    left, right = st.columns([5, 1], vertical_alignment="center")
    left.warning(
        f"Version {current.version} is in force; this form shows version {base}.",
        icon=":material/history:",
    )
    if right.button("Show the new one", key=f"rebase_{form}", width="stretch"):
        session.rebase(form)
        st.rerun()


def model_editor(
    form: str,
    policy: Policy,
    *,
    fields: Mapping[str, object],
    names: Sequence[str],
) -> None:
    """Draw a table of model settings with Apply; edits are checked and applied as a whole.

    Args:
        fields: Column settings by field of `ModelPolicy`.
    """
    before = pd.DataFrame(
        [{"model": n, **_part(policy, n, fields=list(fields))} for n in names]
    ).set_index("model")
    with st.form(f"form_{form}", border=False):
        after = st.data_editor(
            before,
            key=f"editor_{form}_{session.base_version(form)}",
            num_rows="fixed",
            column_config=dict(fields),
            height="content",
        )
        left, right = st.columns([4, 1], vertical_alignment="bottom")
        reason = left.text_input("Reason", key=f"reason_{form}", placeholder="why (optional)")
        is_sent = right.form_submit_button("Apply", type="primary", width="stretch")
    if is_sent:
        _apply_table(form, policy, before=before, after=after, reason=reason)


def _part(policy: Policy, name: str, *, fields: Sequence[str]) -> dict[str, object]:
    document = policy.model(name).model_dump()
    return {field: document[field] for field in fields}


def _apply_table(
    form: str, policy: Policy, *, before: pd.DataFrame, after: pd.DataFrame, reason: str
) -> None:
    changes: dict[str, dict[str, object]] = {}
    for name in after.index:
        for field in after.columns:
            new, old = _plain(after.at[name, field]), _plain(before.at[name, field])
            if new != old:
                changes.setdefault(str(name), {})[str(field)] = new
    if not changes:
        st.info("Nothing was changed.", icon=":material/info:")
        return
    try:
        changed = policy.replace(models=changes)
    except PolicyError as error:
        st.error(str(error), icon=":material/error:")
        return
    apply_edit(form, changed, reason=reason)


def _plain(value: object) -> object:
    """Return a cell as Python's own value; an empty one is None."""
    if value is None or (isinstance(value, float) and pd.isna(value)) or value is pd.NA:
        return None
    item = getattr(value, "item", None)
    return item() if callable(item) else value
