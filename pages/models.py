"""Models: what each one did, how urgent it is, what was promised, and who is resident."""

from __future__ import annotations

import streamlit as st

from engine.errors import EngineError
from engine.events import Command
from shell import forms, model_tables, session, tables

FORM = "models"
BEST = "where most is free"
ORDERS = ((Command.LOAD, "download"), (Command.EVICT, "eject"))
st.header("Models")
station = session.station()


@st.fragment(run_every=1.0, key="models_live")
def table() -> None:
    """Draw what every model and pipeline did since the start."""
    here = session.station()
    models = model_tables.models(here.engine.snapshot(), here.engine.policy)
    pipelines = model_tables.pipelines(here)
    with st.container(border=True, gap="xsmall"):
        st.markdown("**Models** :gray[since the start]")
        tables.draw(models, "No model is known.", right=model_tables.RIGHT)
    if pipelines:
        with st.container(border=True, gap="xsmall"):
            st.markdown("**Pipelines** :gray[inputs that went through all stages]")
            tables.draw(pipelines, "", right=model_tables.RIGHT)


table()
for name, sentence in station.missing.items():
    st.info(f"**{name}**: {sentence}", icon=":material/download:")


def order(command: Command, name: str) -> None:
    """Carry out a click; runs before the page is drawn, so that it counts once."""
    device = st.session_state.get("models_device", BEST)
    try:
        session.station().engine.command(
            command,
            author=session.author(),
            model=name,
            device="" if device == BEST else device,
        )
        session.leave("models_order", f"{command.value} {name}: ordered")
    except EngineError as error:
        session.leave("models_error", str(error))


with st.container(border=True, gap="small"):
    left, right = st.columns([3, 1], vertical_alignment="center")
    left.markdown("**By hand** :gray[what is in use or pinned stays]")
    devices = [device.name for device in station.engine.snapshot().memory.devices]
    right.selectbox(
        "Device", [BEST, *devices], key="models_device", label_visibility="collapsed"
    )
    columns = st.columns(2, gap="large")
    for index, model in enumerate(station.engine.models):
        row = columns[index % 2].container(horizontal=True, vertical_alignment="center")
        row.markdown(model, width="stretch")
        for command, icon in ORDERS:
            row.button(
                command.value.capitalize(),
                key=f"models_{command}_{model}",
                icon=f":material/{icon}:",
                on_click=order,
                args=(command, model),
            )
    if note := session.found("models_order"):
        st.toast(str(note), icon=":material/check:")
    if trouble := session.found("models_error"):
        st.error(str(trouble), icon=":material/error:")

forms.applied_note(FORM)
with st.container(border=True, gap="small"):
    st.markdown("**Urgency and promises** :gray[class 0 is the most urgent]")
    number = st.column_config.NumberColumn
    fields: dict[str, object] = {
        "priority_class": number(
            "class", min_value=0, max_value=9, step=1, required=True, help="0 goes first"
        ),
        "weight": number(
            "weight", min_value=0.01, max_value=100.0, required=True, help="share in its class"
        ),
        "slo_ms": number("SLO ms", min_value=0.1, required=True, help="latency that is good"),
        "deadline_ms": number("deadline ms", min_value=0.1, help="empty: none"),
        "pinned": st.column_config.CheckboxColumn("pinned", help="never evicted"),
    }
    forms.model_editor(FORM, fields=fields, names=session.editable())
