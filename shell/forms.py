"""Forms: an edit becomes one validated policy, shown first, then applied once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from engine.errors import EngineError, PolicyError
from engine.policy import Policy
from shell import differences, session, tables
from shell.differences import Changes


def model_editor(form: str, *, fields: Mapping[str, object], names: Sequence[str]) -> None:
    """Draw a table of model settings; what is changed in it is proposed below it.

    Args:
        fields: Column settings by field of `ModelPolicy`.
    """
    base = session.base_policy(form)
    rows = [{"model": name, **_part(base, name, fields=fields)} for name in names]
    before = pd.DataFrame(rows).set_index("model")
    after = st.data_editor(
        before,
        key=f"editor_{form}_{session.filled(form)}",
        num_rows="fixed",
        column_config=dict(fields),
        height="content",
        placeholder="–",
    )
    changes = changed_cells(before, after)
    propose(form, {"models": changes} if changes else {})


def _part(policy: Policy, name: str, *, fields: Mapping[str, object]) -> dict[str, object]:
    document = policy.model(name).model_dump()
    return {field: document[field] for field in fields}


def changed_cells(before: pd.DataFrame, after: pd.DataFrame) -> dict[str, dict[str, object]]:
    """Return the cells in which two tables of the same shape differ, by row and column."""
    changes: dict[str, dict[str, object]] = {}
    for name in after.index:
        for field in after.columns:
            new, old = _plain(after.at[name, field]), _plain(before.at[name, field])
            if new != old:
                changes.setdefault(str(name), {})[str(field)] = new
    return changes


def _plain(value: object) -> object:
    """Return a cell as Python's own value; an empty one is None."""
    if isinstance(value, list | tuple):
        return tuple(value)
    if value is None or (isinstance(value, float) and pd.isna(value)) or value is pd.NA:
        return None
    item = getattr(value, "item", None)
    return item() if callable(item) else value


def propose(form: str, changes: Changes) -> None:
    """Draw what an edit would change, with a reason, Apply and Discard.

    The one way from an edit to a version. It was made against the policy that
    the form was filled from; if another is in force by now, nothing is
    overwritten: both are shown beside the edit, and the operator decides.

    Args:
        changes: The edit and nothing else, as `Policy.replace` takes it; {}: none.
    """
    base, current = session.base_policy(form), session.station().engine.policy
    try:
        changed = base.replace(**changes) if changes else base
    except PolicyError as error:
        st.error(str(error), icon=":material/error:")
        return
    rows = differences.between({"now": base, "new": changed}, session.editable())
    if current.version != base.version and not changes:
        session.rebase(form)  # nothing was typed that could be lost
        st.rerun()
    if current.version == base.version:
        tables.draw(rows, "What you change is shown here before it is applied.")
    reason, is_sent = _buttons(form, has_edit=bool(rows))
    if is_sent:
        _apply(form, base, changes=changes, reason=reason)
    if current.version != base.version:
        _conflict(form, changes, changed=changed, current=current)


def _buttons(form: str, *, has_edit: bool) -> tuple[str, bool]:
    columns = st.columns([6, 1, 1], vertical_alignment="bottom")
    reason = columns[0].text_input(
        "Reason",
        key=f"reason_{form}_{session.filled(form)}",
        placeholder="Why? It is kept with the version (optional)",
        label_visibility="collapsed",
    )
    columns[1].button(
        "Discard",
        key=f"discard_{form}",
        disabled=not has_edit,
        on_click=session.rebase,
        args=(form,),
        width="stretch",
    )
    is_sent = columns[2].button(
        "Apply", key=f"apply_{form}", type="primary", disabled=not has_edit, width="stretch"
    )
    return reason, is_sent


def _apply(form: str, base: Policy, *, changes: Changes, reason: str) -> None:
    """Apply an edit of a policy and fill the form anew, or say why not."""
    try:
        version = session.station().apply(
            base.replace(**changes),
            author=session.author(),
            reason=reason or f"edited on the {form} page",
            expected_version=base.version,
        )
    except EngineError as error:
        st.error(str(error), icon=":material/error:")
        return
    session.rebase(form)
    session.leave(form, version)
    st.rerun()


def _conflict(form: str, changes: Changes, *, changed: Policy, current: Policy) -> None:
    """Draw what the form was filled from, what is in force, and the edit, side by side."""
    base = session.base_policy(form)
    st.warning(
        f"Version {current.version} came into force after this form was filled from version "
        f"{base.version}. Nothing was overwritten.",
        icon=":material/call_split:",
    )
    columns = {
        f"version {base.version}": base,
        f"version {current.version}, in force": current,
        "your edit": changed,
    }
    tables.draw(differences.between(columns, session.editable()), "They differ in nothing.")
    left, right = st.columns(2)
    left.button(
        f"Drop my edit, show version {current.version}",
        key=f"drop_{form}",
        on_click=session.rebase,
        args=(form,),
        width="stretch",
    )
    # The version is part of the key: a click on what was shown never applies to a later one.
    is_sent = right.button(
        f"Apply my edit on top of version {current.version}",
        key=f"on_top_{form}_{current.version}",
        width="stretch",
    )
    if is_sent:
        reason = str(st.session_state.get(f"reason_{form}_{session.filled(form)}", ""))
        _apply(form, current, changes=changes, reason=reason)


def applied_note(form: str) -> None:
    """Say once which version an edit became."""
    version = session.found(form)
    if version is not None:
        st.toast(f"Policy version {version} is in force", icon=":material/check:")
