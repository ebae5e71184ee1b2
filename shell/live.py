"""Live: a Plotly chart that is updated in place, so that zoom and hover survive each second."""

from __future__ import annotations

import streamlit as st

_SCRIPT = """
const library = () => window.__millpondPlotly ??= new Promise((done, failed) => {
  if (window.Plotly) return done(window.Plotly);
  const tag = document.createElement('script');
  tag.src = '/assets/plotly.min.js';
  tag.onload = () => done(window.Plotly);
  tag.onerror = failed;
  document.head.appendChild(tag);
});
const watched = new WeakMap();
export default function ({ data, parentElement }) {
  const box = parentElement.querySelector('.millpond-live');
  const style = getComputedStyle(parentElement);
  const theme = name => style.getPropertyValue(name).trim();
  box.style.height = data.height + 'px';
  library().then(Plotly => {
    const figure = JSON.parse(data.spec), layout = figure.layout;
    const text = theme('--st-text-color'), line = theme('--st-border-color') || '#8884';
    const font = { color: text, family: theme('--st-font'), size: 11 };
    layout.font = Object.assign(font, layout.font);
    Object.keys(layout).filter(k => /^[xy]axis/.test(k)).forEach(k => {
      const axis = layout[k];
      axis.gridcolor ??= line; axis.linecolor ??= line; axis.zerolinecolor ??= line;
    });
    Object.assign(layout, { autosize: true, height: data.height,
      paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)' });
    layout.hoverlabel = { bgcolor: theme('--st-secondary-background-color'),
      font: { color: text }, bordercolor: line };
    Plotly.react(box, figure.data, layout, { displaylogo: false, displayModeBar: 'hover',
      modeBarButtonsToRemove: ['select2d', 'lasso2d', 'autoScale2d'] });
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


def live(spec: str, *, key: str, height: int = 250) -> None:
    """Draw or update a chart.

    Args:
        spec: A Plotly figure as JSON; `layout.uirevision` keeps the user's zoom.
        key: Names the chart; the same key is the same node in the page.
        height: In pixels.
    """
    _CHART(data={"spec": spec, "height": height}, key=key, height=height)
