"""Round robin: batches and replicas go to the next free device in turn."""

from __future__ import annotations

from engine.decisions import Reason
from engine.memory.state import MemoryState
from engine.placement.score import Choice, Want


def round_robin(state: MemoryState, want: Want) -> Choice:
    """Take the next device in turn that has a free batch place.

    Whether it holds the model does not matter. The baseline that many routers
    use; it knows nothing of memory.
    """
    count = len(state.devices)
    for step in range(count):
        device = state.devices[(want.turn + step) % count]
        if device.prepared is None:
            return Choice(device.name, Reason.IN_TURN, (("turn", want.turn),))
    return Choice("", Reason.IN_TURN)
