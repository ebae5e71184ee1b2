"""Process memory: what the whole process holds, against the books, from a baseline on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from engine.memory.state import MemoryState
from engine.snapshot import Snapshot

_ROLLUP = Path("/proc/self/smaps_rollup")


@dataclass(frozen=True, slots=True)
class ProcessState:
    """Show where the process's memory is, in bytes.

    Attributes:
        baseline_bytes: Held before any model was built: interpreter and libraries.
        weight_bytes: Residents of CPU devices, as the devices count them.
        host_bytes: Host copies that are kept in memory.
        rest_bytes: All the rest: activations that the C library keeps for the next
            batch, pages, the store's writer.
        most_bytes: What books and reserves allow: baseline, host copies, and all that
            CPU devices may use.
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

    def __init__(self, read: Callable[[], int] | None = None) -> None:
        """Take the baseline now.

        Args:
            read: Returns the bytes that the process holds; None: asks the system.
        """
        self._read = read or held_bytes
        self._baseline = self._read()

    def state(self, snapshot: Snapshot) -> ProcessState:
        """Return where the memory is now."""
        held = self._read()
        here = [device for device in snapshot.memory.devices if device.kind == "cpu"]
        weights = _weights(snapshot.memory)
        host = sum(model.host_bytes for model in snapshot.models if not model.is_on_disk)
        most = self._baseline + host + sum(device.capacity_bytes for device in here)
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


def _weights(memory: MemoryState) -> int:
    """Return the residents of CPU devices, as the devices count them where they were asked."""
    here = (device for device in memory.devices if device.kind == "cpu")
    return sum(device.truth_bytes or device.resident_bytes for device in here)
