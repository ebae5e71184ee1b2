"""Machine: what runs were made with - hardware and code - as two short texts."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import psutil

from engine.memory.state import DeviceState
from engine.units import format_bytes

ROOT = Path(__file__).resolve().parents[1]
"""The checkout: launcher, notebooks and settings lie there."""

SHORT_HASH = 10


def hardware(devices: Iterable[DeviceState]) -> str:
    """Describe processor, memory and the engine's devices in one line."""
    cores = psutil.cpu_count(logical=False) or psutil.cpu_count() or 1
    memory = format_bytes(psutil.virtual_memory().total)
    shown = ", ".join(f"{d.name} ({format_bytes(d.pool_bytes)})" for d in devices)
    return f"{processor()}, {cores} cores, {memory}; {shown}"


def processor() -> str:
    """Return the processor's name as the system gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def code_version() -> str:
    """Return the version and, in a checkout, the commit: `0.1.0+1a2b3c4d5e`."""
    try:
        version = metadata.version("millpond")
    except metadata.PackageNotFoundError:
        version = "0"
    commit = _commit(ROOT / ".git")
    return f"{version}+{commit}" if commit else version


def _commit(git: Path) -> str:
    try:
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref: "):
            return head[:SHORT_HASH]
        name = head.removeprefix("ref: ")
        if (git / name).is_file():
            return (git / name).read_text(encoding="utf-8")[:SHORT_HASH]
        packed = (git / "packed-refs").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next((line[:SHORT_HASH] for line in packed if line.endswith(f" {name}")), "")
