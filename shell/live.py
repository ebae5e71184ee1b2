"""Live: a Plotly chart that is updated in place, so that zoom and hover survive each second."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import streamlit as st

_SCRIPT = r"""
const library = () => window.__millpondPlotly ??= new Promise((done, failed) => {
  if (window.Plotly) return done(window.Plotly);
  const tag = document.createElement('script');
  tag.src = '/assets/plotly.min.js';
  tag.onload = () => done(window.Plotly);
  tag.onerror = failed;
  document.head.appendChild(tag);
});
const watched = new WeakMap();
const cell = value => value == null ? '' : /[",\n]/.test(value) ? JSON.stringify(value) : value;
const save = chart => {
  const rows = [['series', 'x', 'y', 'note']];
  chart.data.forEach(trace => (trace.y || []).forEach((y, i) => rows.push([trace.name,
    chart.layout.xaxis.type === 'date' ? new Date(trace.x[i]).toISOString().slice(0, -1)
      : trace.x[i], y, trace.customdata?.[i]])));
  const link = document.createElement('a');
  const text = rows.map(row => row.map(cell).join(',')).join('\n');
  link.href = URL.createObjectURL(new Blob([text], { type: 'text/csv' }));
  link.download = (chart.dataset.name || 'chart') + '.csv';
  link.click();
  URL.revokeObjectURL(link.href);
};
export default function ({ data, parentElement }) {
  const box = parentElement.querySelector('.millpond-live');
  const style = getComputedStyle(parentElement);
  const theme = name => style.getPropertyValue(name).trim();
  box.style.height = data.height + 'px';
  library().then(Plotly => {
    const figure = JSON.parse(data.spec), layout = figure.layout;
    figure.data.forEach(trace => { trace.x ??= figure.x; });
    box.dataset.name = data.name;
    box.setAttribute('role', 'img');
    box.setAttribute('aria-label', data.alt);
    const text = theme('--st-text-color'), line = theme('--st-border-color') || '#8884';
    const font = { color: text, family: theme('--st-font'), size: 11 };
    layout.font = Object.assign(font, layout.font);
    Object.keys(layout).filter(k => /^[xy]axis/.test(k)).forEach(k => {
      const axis = layout[k];
      axis.gridcolor ??= line; axis.linecolor ??= line; axis.zerolinecolor ??= line;
      axis.automargin ??= true;
    });
    Object.assign(layout, { autosize: true, height: data.height,
      paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)' });
    layout.hoverlabel = { bgcolor: theme('--st-secondary-background-color'),
      font: { color: text }, bordercolor: line };
    Plotly.react(box, figure.data, layout, { displaylogo: false, displayModeBar: 'hover',
      modeBarButtonsToRemove: ['select2d', 'lasso2d', 'autoScale2d'],
      modeBarButtonsToAdd: [{ name: 'csv', title: 'Save the data as CSV', click: save,
        icon: Plotly.Icons.disk }] });
    if (!watched.has(box)) {
      const watcher = new ResizeObserver(() => box.isConnected && Plotly.Plots.resize(box));
      watcher.observe(box);
      watched.set(box, watcher);
    }
  });
  return () => {
    watched.get(box)?.disconnect();
    watched.delete(box);
    window.Plotly?.purge(box);
  };
}
"""

_CHART = st.components.v2.component(
    "millpond_live",
    html="<div class='millpond-live' style='width:100%'></div>",
    js=_SCRIPT,
    isolate_styles=False,  # Plotly puts the styles of its hover boxes into the document's head
)


def live(spec: str, *, key: str, height: int = 230, alt: str = "") -> None:
    """Draw or update a chart.

    Args:
        spec: A Plotly figure as JSON; `layout.uirevision` keeps the user's zoom. Lines
            without an `x` take the figure's own, which stands once beside `data`.
        key: Names the chart; the same key is the same node in the page.
        height: In pixels.
        alt: What it shows, for who cannot see it; "": its key in words.
    """
    words = alt or key.replace("_", " ")
    _CHART(
        data={"spec": spec, "height": height, "name": key, "alt": words},
        key=key,
        height=height,
    )


def panel(title: str, unit: str, *, spec: str, key: str, height: int = 230) -> None:
    """Draw a chart in a box under its title; the unit stands beside it in grey."""
    with st.container(border=True, gap="xsmall"):
        st.markdown(f"**{title}** :gray[{unit}]")
        live(spec, key=key, height=height, alt=f"{title}, {unit}")


class Panel(NamedTuple):
    """Hold a chart in a box; see `panel`."""

    title: str
    unit: str
    spec: str
    key: str


def row(panels: Sequence[Panel], height: int) -> None:
    """Draw charts beside each other, equally wide."""
    for column, one in zip(st.columns(len(panels)), panels, strict=True):
        with column:
            panel(one.title, one.unit, spec=one.spec, key=one.key, height=height)
