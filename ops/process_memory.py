"""Process memory: what the whole process holds, against the books, from a baseline on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from engine.memory.state import MemoryState
from engine.snapshot import Snapshot
from engine.units import MIB

SERVER_BYTES = 384 * MIB
"""Pages, store and the inputs of a load come after the baseline; they took 130 to 330 MiB."""
_ROLLUP = Path("/proc/self/smaps_rollup")


@dataclass(frozen=True, slots=True)
class ProcessState:
    """Show where the process's memory is, in bytes.

    Attributes:
        baseline_bytes: Held when the station was ready, host copies not counted:
            interpreter, libraries, models as they were built.
        weight_bytes: Residents of CPU devices, as the devices count them.
        host_bytes: Host copies that are kept in memory.
        rest_bytes: All the rest: activations that the C library keeps for the next
            batch, pages, the store's writer.
        most_bytes: What books and reserves allow: baseline, host copies, all that CPU
            devices may use, and `SERVER_BYTES` for pages, store and load.
    """

    held_bytes: int
    baseline_bytes: int
    weight_bytes: int
    host_bytes: int
    rest_bytes: int
    most_bytes: int

    @property
    def is_over(self) -> bool:
        """Return whether the process holds more than the books allow."""
        return self.held_bytes > self.most_bytes


class ProcessMemory:
    """Compare what the system says of this process with what the engine says."""

    def __init__(self, snapshot: Snapshot, read: Callable[[], int] | None = None) -> None:
        """Take the baseline now: nothing has run yet.

        Args:
            read: Returns the bytes that the process holds; None: asks the system.
        """
        self._read = read or held_bytes
        self._baseline = max(0, self._read() - _host(snapshot))

    def state(self, snapshot: Snapshot) -> ProcessState:
        """Return where the memory is now."""
        held = self._read()
        here = [device for device in snapshot.memory.devices if device.kind == "cpu"]
        weights = _weights(snapshot.memory)
        host = _host(snapshot)
        devices = sum(device.capacity_bytes for device in here)
        most = self._baseline + host + devices + SERVER_BYTES
        rest = max(0, held - self._baseline - weights - host)
        return ProcessState(held, self._baseline, weights, host, rest, most)


def held_bytes() -> int:
    """Return what the process holds and the system may not take at will.

    Evicted weights are offered to the system, which takes them when it needs
    them; until then it counts them as resident, so they are taken off here.
    """
    try:
        lines = _ROLLUP.read_text(encoding="ascii").splitlines()
    except OSError:
        return int(psutil.Process().memory_info().rss)
    sizes = dict(line.split(":", 1) for line in lines if line.endswith("kB"))
    kib = (int(sizes.get(name, "0 kB").split()[0]) for name in ("Rss", "LazyFree"))
    held, offered = kib
    return (held - offered) * 1024


def _host(snapshot: Snapshot) -> int:
    return sum(model.host_bytes for model in snapshot.models if not model.is_on_disk)


def _weights(memory: MemoryState) -> int:
    """Return the residents of CPU devices, as the devices count them where they were asked."""
    here = (device for device in memory.devices if device.kind == "cpu")
    return sum(device.truth_bytes or device.resident_bytes for device in here)
