"""A real server and a real browser."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
START_S = 90
MODELS = '''"""The models whose weights are committed."""
from sample_models import MODELS as ALL

MODELS = [spec for spec in ALL if spec.name in ("digit_reader", "ranker")]
'''


@dataclass
class Server:
    """Know a running dashboard."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path

    def status(self) -> str:
        """Return what the status route says, as text."""
        return read(f"{self.url}/api/status")


def read(url: str) -> str:
    """Return the body of an address; "" while nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310  our own server
            return str(answer.read().decode())
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return ""


def free_port() -> int:
    """Return a port that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start_server(folder: Path) -> Server:
    """Start the dashboard as a user would, with a store of its own."""
    models, log, port = folder / "few.py", folder / "log.txt", free_port()
    models.write_text(MODELS)
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)]
    options = ["--store", f"sqlite:///{folder}/test.db", "--devices", "cpu:1x256MiB"]
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*command, "--", *options, "--models", str(models)],
            cwd=ROOT,
            env=dict(os.environ),
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    return Server(f"http://127.0.0.1:{port}", process, log)


def wait_until_up(server: Server) -> None:
    """Wait for the server and its station; a process of its own can only be asked."""
    end = time.monotonic() + START_S
    while '"running"' not in server.status():
        assert server.process.poll() is None, server.log.read_text()
        assert time.monotonic() < end, server.log.read_text()
        time.sleep(0.2)


def stop_server(server: Server) -> None:
    """Stop the server as Ctrl-C does; the exit status is Streamlit's own."""
    server.process.send_signal(signal.SIGINT)
    server.process.wait(30)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Run one dashboard for all tests that do not stop it."""
    running = start_server(tmp_path_factory.mktemp("server"))
    wait_until_up(running)
    yield running
    if running.process.poll() is None:
        stop_server(running)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Run one browser for a module: meanwhile its library owns this thread's event loop."""
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=list(FLAGS)
        )
        yield found
        found.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Open a fresh tab."""
    context = browser.new_context(viewport={"width": 1440, "height": 1000})
    context.set_default_timeout(45_000)
    yield context.new_page()
    context.close()
