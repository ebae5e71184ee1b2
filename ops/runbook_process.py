"""Runbook process: one child that executes a notebook, followed by its lines on stdout."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import psutil

from engine.errors import InputError
from ops.machine import ROOT

LIMIT_S = 1800.0
CANCELLED = "cancelled"


class Child:
    """Run `ops.runbook_child` in a session of its own, so that all of it can be ended.

    Attributes:
        report: Where its HTML report will be.
        error: Why it failed; "" while it runs or if all is well.
    """

    def __init__(
        self, source: Path, stem: Path, *, parameters: Mapping[str, object], limit_s: float
    ) -> None:
        """Start it.

        Args:
            stem: Path of its results without their endings.
            limit_s: Time after which it is ended.
        """
        self.report = _beside(stem, ".html")
        self.error = ""
        self.cells_done = self.cells_total = 0
        self._started_s = time.monotonic()
        self._ended_s: float | None = None
        self._is_cancelled = False
        self._limit_s = limit_s
        settings = _beside(stem, ".json")
        try:
            stem.parent.mkdir(parents=True, exist_ok=True)
            settings.write_text(json.dumps(dict(parameters)), encoding="utf-8")
        except OSError as error:
            raise InputError(f"{stem.parent}: cannot be written: {error.strerror}") from error
        results = (_beside(stem, ".ipynb"), self.report, settings)
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  closed when it is read
        self._process = subprocess.Popen(
            [sys.executable, "-m", "ops.runbook_child", str(source), *map(str, results)],
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            stdin=subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
            env=_environment(),
            start_new_session=True,
        )

    @property
    def is_running(self) -> bool:
        """Return whether it has not ended yet."""
        return self._ended_s is None

    @property
    def seconds(self) -> float:
        """Return how long it has run."""
        return (self._ended_s or time.monotonic()) - self._started_s

    @property
    def state(self) -> Literal["running", "finished", "failed", "cancelled"]:
        """Return how it stands."""
        if self.is_running:
            return "running"
        if self._is_cancelled:
            return "cancelled"
        return "failed" if self.error else "finished"

    def cancel(self) -> None:
        """End it and every process that it started."""
        if self.is_running and not self._is_cancelled:
            self._is_cancelled = True
            self._kill()

    def follow(self) -> None:
        """Read its lines until it ends; called once, from a thread that may wait."""
        watchdog = threading.Timer(self._limit_s, self._time_is_over)
        watchdog.daemon = True
        watchdog.start()
        has_ended = False
        stdout = self._process.stdout
        assert stdout is not None, "it was started with a pipe"
        for line in stdout:
            has_ended = self._take(line) or has_ended
        code = self._process.wait()
        watchdog.cancel()
        if code and not has_ended and not self.error:
            self.error = CANCELLED if self._is_cancelled else self._last_words(code)
        stdout.close()
        self._stderr.close()
        self._ended_s = time.monotonic()

    def _take(self, line: str) -> bool:
        """Take note of a line; return whether it is the last one."""
        try:
            said = json.loads(line)
        except ValueError:
            return False
        if not isinstance(said, dict):
            return False
        match said.get("event"):
            case "begun":
                self.cells_total = int(said["cells"])
            case "cell":
                self.cells_done = int(said["done"])
            case "ended":
                self.error = str(said["error"])
                return True
        return False

    def _last_words(self, code: int) -> str:
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"the process ended with status {code}"

    def _time_is_over(self) -> None:
        self.error = f"took longer than {self._limit_s:g} s"
        self._kill()

    def _kill(self) -> None:
        """End the child's group, and the kernel, which has a group of its own."""
        try:
            kernels = psutil.Process(self._process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        for kernel in kernels:
            _end(kernel)


def _end(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return


def _environment() -> dict[str, str]:
    """Return the child's environment: few threads, charts that need no network."""
    return {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PLOTLY_RENDERER": "notebook",
        "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }


def _beside(stem: Path, ending: str) -> Path:
    """Return the path with an ending; a dot in the stem is no ending."""
    return stem.parent / (stem.name + ending)
