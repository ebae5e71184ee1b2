"""Doctor: what is on this machine, what works, and what to install where something does not."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata

import psutil

from engine.devices.process import (
    interpreter_effect,
    memory_effect,
    tune_interpreter,
    tune_memory,
)
from engine.errors import EngineError
from engine.spec import ModelSpec, PipelineSpec
from engine.units import format_bytes
from ops.machine import code_version, processor
from ops.models import resolve
from storage import Store

OLDEST_PYTHON = (3, 11)
TORCH_TIMEOUT_S = 120
_TORCH = """
import json, torch
cuda = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
print(json.dumps({"version": torch.__version__, "cuda": cuda,
                  "sum": float(torch.ones(64, 64).matmul(torch.ones(64, 64)).sum())}))
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """Say how one thing stands.

    Attributes:
        is_ok: It works; where it is optional, everything else works without it.
        todo: What to run or to install; "" if nothing.
    """

    name: str
    is_ok: bool
    text: str
    todo: str = ""
    is_optional: bool = False


def examine(store_url: str, models: Sequence[str]) -> tuple[Finding, ...]:
    """Look at everything that a station needs; changes nothing but this process's settings."""
    return (
        _python(),
        _machine(),
        *_torch(),
        *_tuning(),
        _store(store_url),
        *_models(models),
        _package("onnxruntime", "compares the OCR models with their origin", extra="[dev]"),
        _package("sklearn", "retrains digit_reader", extra="[dev]"),
        _package("playwright", "browser tests", extra="[dev]"),
        _chromium(),
    )


def _python() -> Finding:
    found = ".".join(map(str, sys.version_info[:3]))
    is_ok = sys.version_info >= OLDEST_PYTHON
    return Finding(
        "python", is_ok, found, "" if is_ok else "install Python 3.11, then `make setup`"
    )


def _machine() -> Finding:
    cores = psutil.cpu_count(logical=False) or psutil.cpu_count() or 1
    memory = psutil.virtual_memory()
    text = (
        f"{processor()}, {cores} cores, {format_bytes(memory.available)} of "
        f"{format_bytes(memory.total)} free; millpond {code_version()}"
    )
    return Finding("machine", True, text)


def _torch() -> tuple[Finding, ...]:
    """Ask a process of its own: a torch that crashes at its import is a finding too."""
    try:
        answer = subprocess.run(
            [sys.executable, "-c", _TORCH],
            capture_output=True,
            text=True,
            timeout=TORCH_TIMEOUT_S,
            check=True,
        )
        found = json.loads(answer.stdout.splitlines()[-1])
    except (subprocess.SubprocessError, ValueError, IndexError, OSError) as error:
        words = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
        return (Finding("torch", False, words[-1] if words else "no answer", "`make setup`"),)
    names = ", ".join(found["cuda"]) or "no CUDA device: models run on the CPU"
    return (
        Finding("torch", True, found["version"]),
        Finding("cuda", bool(found["cuda"]), names, is_optional=True),
    )


def _tuning() -> tuple[Finding, ...]:
    tune_memory()
    tune_interpreter()
    checks = {"memory tuning": memory_effect(), "interpreter tuning": interpreter_effect()}
    return tuple(
        Finding(
            name, check.is_ok, check.text.partition(": ")[2] or check.text, is_optional=True
        )
        for name, check in checks.items()
    )


def _store(url: str) -> Finding:
    try:
        store = Store.open(url, read_only=True)
    except EngineError as error:
        is_absent = "no such" in str(error) or "does not exist" in str(error)
        text = f"{url}: not there yet; `millpond run` makes it" if is_absent else str(error)
        return Finding("store", is_absent, text)
    try:
        runs = len(store.runs(limit=10_000))
    finally:
        store.close()
    return Finding("store", True, f"{url}: {runs} runs")


def _models(names: Sequence[str]) -> list[Finding]:
    try:
        catalog = resolve(names)
    except EngineError as error:
        return [Finding("models", False, str(error), "choose others with --models")]
    return [
        *(_listed(spec) for spec in catalog.models),
        *(_listed(spec) for spec in catalog.pipelines),
    ]


def _listed(spec: ModelSpec | PipelineSpec) -> Finding:
    text = spec.missing or spec.source or "can be built"
    todo = spec.missing.partition("run ")[2] if spec.missing else ""
    return Finding(f"model {spec.name}", not spec.missing, text, todo, is_optional=True)


def _package(module: str, purpose: str, *, extra: str) -> Finding:
    if importlib.util.find_spec(module) is None:
        return Finding(
            module,
            False,
            f"not installed: {purpose}",
            f"`pip install -c constraints.txt -e '.{extra}'`",
            is_optional=True,
        )
    name = {"sklearn": "scikit-learn"}.get(module, module)
    return Finding(module, True, f"{metadata.version(name)}: {purpose}", is_optional=True)


def _chromium() -> Finding:
    path = shutil.which("chromium")
    todo = "" if path else "`apt-get install chromium`"
    text = path or "not installed: browser tests are skipped"
    return Finding("chromium", path is not None, text, todo, is_optional=True)
