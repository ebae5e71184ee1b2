"""Memory form: how room is made, how devices are divided, what each model may hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

import pandas as pd
import streamlit as st

from engine.memory.state import DeviceState
from engine.policy import MemoryPolicy, ModelPolicy, Policy
from engine.rules import RUNGS, EvictionName, Precision
from engine.units import MIB
from shell import forms, session

FORM = "memory"
EVICTIONS = {
    "cost_aware": "cheapest to get back per byte",
    "lru": "least recently used",
    "priority_lru": "least urgent class, then LRU",
}
NUMBERS = {
    "protect_idle_ms": (
        "protect idle ms",
        100.0,
        "safe from less urgent classes after its use",
    ),
    "min_residence_ms": ("min. residence ms", 10.0, "safe from its equals after its load"),
    "compaction_mib_per_s": ("moves MiB/s", 256.0, "moved per second and device; 0: none"),
    "demand_window_s": ("demand window s", 10.0, "how far back demand counts; cost_aware"),
    "load_overhead_ms": ("load overhead ms", 10.0, "of a load beside its bytes; cost_aware"),
    "smallest_batch": ("smallest batch", 0.05, "share of the waiting items, 0 to 1"),
    "restore_share": ("restore share", 0.05, "free share wanted after full precision is back"),
}
PER_ROW = 4


def draw(devices: Sequence[DeviceState]) -> None:
    """Draw the three parts of the form and what they would change."""
    forms.applied_note(FORM)
    base, fill = session.base_policy(FORM), session.filled(FORM)
    with st.container(border=True, gap="small"):
        st.markdown("**Policy** :gray[holds from the next decision on; nothing is dropped]")
        changes: dict[str, object] = {}
        if memory := _memory(base.memory, fill):
            changes["memory"] = memory
        left, right = st.columns([1, 1])
        with left:
            if parts := _devices(base, devices, fill=fill):
                changes["devices"] = parts
        with right:
            if models := _models(base, fill):
                changes["models"] = models
        forms.propose(FORM, changes)


def _memory(base: MemoryPolicy, fill: int) -> dict[str, object]:
    names = list(get_args(EvictionName))
    left, middle, right = st.columns([2, 4, 2], vertical_alignment="bottom")
    wanted: dict[str, object] = {
        "eviction": left.selectbox(
            "Eviction",
            names,
            index=names.index(base.eviction),
            format_func=lambda name: f"{name}: {EVICTIONS[name]}",
            key=f"memory_eviction_{fill}",
        ),
        "ladder": (
            *middle.multiselect(
                "Ladder",
                RUNGS[:-1],
                default=list(base.ladder[:-1]),
                key=f"memory_ladder_{fill}",
                help="Ways to make room, in the order in which they were chosen. Compact "
                "after evict: the cheaper of the two is taken. Last of all: wait.",
            ),
            "wait",
        ),
        "preallocate": right.toggle(
            "Pre-allocate workspace",
            value=base.preallocate,
            key=f"memory_preallocate_{fill}",
            help="Keep a lease at the high watermark's size while nothing else needs it.",
        ),
    }
    wanted |= _numbers(base, fill)
    return {name: value for name, value in wanted.items() if value != getattr(base, name)}


def _numbers(base: MemoryPolicy, fill: int) -> dict[str, object]:
    wanted: dict[str, object] = {}
    items = list(NUMBERS.items())
    for start in range(0, len(items), PER_ROW):
        columns = st.columns(PER_ROW, vertical_alignment="bottom")
        for column, (name, (label, step, words)) in zip(
            columns, items[start : start + PER_ROW], strict=False
        ):
            wanted[name] = column.number_input(
                label,
                min_value=0.0,
                value=float(getattr(base, name)),
                step=step,
                key=f"memory_{name}_{fill}",
                help=words,
            )
    wanted["host_mib"] = columns[-1].number_input(
        "host copies MiB",
        min_value=0.0,
        value=base.host_mib,
        step=256.0,
        placeholder="no limit",
        key=f"memory_host_{fill}",
        help="Beyond it weights are read from mapped files.",
    )
    return wanted


def _devices(
    base: Policy, devices: Sequence[DeviceState], *, fill: int
) -> Mapping[str, object]:
    rows = []
    for device in devices:
        part = base.devices.get(device.name)
        rows.append(
            {
                "device": device.name,
                "capacity": device.capacity_bytes / MIB,
                "pool_mib": part.pool_mib if part else None,
                "reserve_mib": part.reserve_mib if part else None,
                "nccl_connections": part.nccl_connections if part else 0,
                "nccl_channels": part.nccl_channels if part else 0,
            }
        )
    number = st.column_config.NumberColumn
    columns = {
        "capacity": number("capacity MiB", disabled=True, format="%.0f"),
        "pool_mib": number("pool MiB", min_value=4.0, help="empty: what the reserve leaves"),
        "reserve_mib": number("reserve MiB", min_value=0.0, help="empty: as computed"),
        "nccl_connections": number("NCCL peers", min_value=0, step=1, help="per direction"),
        "nccl_channels": number("channels", min_value=0, step=1, help="of NCCL"),
    }
    return _edited(pd.DataFrame(rows).set_index("device"), columns, key=f"devices_{fill}")


def _models(base: Policy, fill: int) -> Mapping[str, object]:
    rows = []
    for name in session.station().engine.models:
        part: ModelPolicy = base.model(name)
        rows.append(
            {
                "model": name,
                "pinned": part.pinned,
                "quota_mib": part.quota_mib,
                "precisions": list(part.precisions),
            }
        )
    columns = {
        "pinned": st.column_config.CheckboxColumn("pinned", help="never evicted"),
        "quota_mib": st.column_config.NumberColumn(
            "quota MiB", min_value=1.0, help="weights and leases per device; empty: none"
        ),
        "precisions": st.column_config.MultiselectColumn(
            "precisions", options=list(get_args(Precision)), help="fp32 always; others opt in"
        ),
    }
    return _edited(pd.DataFrame(rows).set_index("model"), columns, key=f"models_{fill}")


def _edited(
    before: pd.DataFrame, columns: Mapping[str, object], *, key: str
) -> dict[str, dict[str, object]]:
    """Draw a table to edit and return the cells that changed, by row."""
    after = st.data_editor(
        before,
        key=f"memory_{key}",
        num_rows="fixed",
        column_config=dict(columns),
        height="content",
        placeholder="–",
    )
    return forms.changed_cells(before, after)
