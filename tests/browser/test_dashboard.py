"""Tests in a real browser: what only a browser can show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Server, start_server, stop_server, wait_until_up

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]
CHART = ".st-key-overview_throughput .js-plotly-plot, .js-plotly-plot"


def heading(page: Page, text: str) -> None:
    """Wait for a page's heading."""
    expect(page.get_by_role("heading", name=text, exact=True).first).to_be_visible()


def test_a_deep_link_on_a_fresh_server_shows_the_whole_page(tmp_path: Path, page: Page):
    fresh = start_server(tmp_path)
    try:
        wait_until_up(fresh)
        page.goto(f"{fresh.url}/memory")
        heading(page, "Memory")
        expect(page.get_by_role("link", name="Overview")).to_be_visible()
        expect(page.get_by_text("running · up")).to_be_visible()
    finally:
        stop_server(fresh)
    assert "millpond stopped cleanly" in fresh.log.read_text()


def test_a_live_edit_changes_the_engine(server: Server, page: Page):
    page.goto(f"{server.url}/placement")
    heading(page, "Placement")
    version = json.loads(server.status())["policy_version"]
    page.get_by_text("round_robin", exact=True).click()
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_text(f"policy version {version + 1}")).to_be_visible()
    assert json.loads(server.status())["policy_version"] == version + 1


def test_a_load_from_the_page_moves_the_charts(server: Server, page: Page):
    page.goto(f"{server.url}/load")
    heading(page, "Load")
    page.get_by_role("button", name="Start steady load").click()
    expect(page.get_by_text("Goodput").first).to_be_visible()
    page.wait_for_function(
        """() => [...document.querySelectorAll('.js-plotly-plot')].some(
             plot => plot.data.some(trace => trace.y.some(value => value > 0)))"""
    )
    assert json.loads(server.status())["load"]["completed"] > 0


def test_zoom_and_node_survive_refreshes(server: Server, page: Page):
    page.goto(f"{server.url}/")
    heading(page, "Overview")
    page.wait_for_function(
        """() => { const plot = document.querySelector('.js-plotly-plot');
             return plot && plot.data.length && plot.data[0].x.length > 3; }"""
    )
    before = page.evaluate(
        """async () => { const plot = document.querySelector('.js-plotly-plot');
             plot.dataset.seen = 'yes';
             const [low, high] = plot._fullLayout.xaxis.range;
             await window.Plotly.relayout(plot, {'xaxis.range': [low, high]});
             return [String(low), String(high), plot.data[0].x.length]; }"""
    )
    page.wait_for_function(
        """count => document.querySelector('.js-plotly-plot').data[0].x.length > count""",
        arg=before[2] + 1,
    )
    after = page.evaluate(
        """() => { const plot = document.querySelector('.js-plotly-plot');
             return [...plot._fullLayout.xaxis.range.map(String), plot.dataset.seen]; }"""
    )
    assert after == [before[0], before[1], "yes"]


def test_nothing_is_fetched_from_elsewhere(server: Server, page: Page):
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{server.url}/")
    heading(page, "Overview")
    page.locator(".js-plotly-plot").first.wait_for()
    foreign = [
        url for url in asked if not url.startswith((server.url, "ws://127.", "data:", "blob:"))
    ]
    assert foreign == []
