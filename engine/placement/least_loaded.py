"""Least loaded: a batch goes where it would start first."""

from __future__ import annotations

from engine.decisions import Reason
from engine.memory.state import MemoryState
from engine.placement.score import Choice, Want, swap_ns, wait_ns


def least_loaded(state: MemoryState, want: Want) -> Choice:
    """Take the device where the batch would start first, the copy of its weights counted.

    It knows queues and copies, but neither headroom nor fragmentation nor
    whose weights would have to go.
    """

    def start_ns(index: int) -> tuple[int, int]:
        device = state.devices[index]
        return max(wait_ns(device, state.at_ns), swap_ns(device, want)), index

    best = min(range(len(state.devices)), key=start_ns)
    device = state.devices[best]
    return Choice(device.name, Reason.LEAST_QUEUED, (("start_ns", start_ns(best)[0]),))
