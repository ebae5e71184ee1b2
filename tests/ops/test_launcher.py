"""Launcher: the real server starts a station, answers at once, and stops cleanly."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from ops.machine import ROOT
from ops.options import Options
from storage import Store

PATIENCE_S = 120.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def ask(url: str) -> dict[str, object]:
    try:
        with urlopen(url, timeout=5) as answer:  # noqa: S310  our own server on 127.0.0.1
            found = json.load(answer)
    except URLError:
        return {"state": "silent"}
    assert isinstance(found, dict)
    return found


def test_the_server_brings_up_a_station_and_ends_it_cleanly(tmp_path: Path) -> None:
    (tmp_path / "served_models.py").write_text(
        "from sample_models import MODELS as ALL\n"
        "MODELS = [spec for spec in ALL if spec.name == 'digit_reader']\n"
    )
    options = Options(
        f"sqlite:///{tmp_path}/served.db", "cpu:1x64MiB", (f"{tmp_path}/served_models.py",)
    )
    port = free_port()
    with subprocess.Popen(
        [sys.executable, "-m", "ops.cli", "run", "--port", str(port), *options.arguments()],
        cwd=ROOT,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as server:
        assert server.stdout is not None
        for line in server.stdout:
            if line.startswith("running: "):
                break
        found = ask(f"http://127.0.0.1:{port}/api/status")
        server.send_signal(signal.SIGTERM)
        rest = server.stdout.read()
        assert server.wait(PATIENCE_S) is not None
    assert found["state"] == "running"
    assert "millpond stopped cleanly" in rest
    assert "Traceback" not in rest
    with Store.open(options.store) as store:
        assert store.last_policy() is not None
