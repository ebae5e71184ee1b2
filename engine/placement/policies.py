"""The placement policies by name."""

from __future__ import annotations

from engine.placement.least_loaded import least_loaded
from engine.placement.memory_aware import memory_aware
from engine.placement.round_robin import round_robin
from engine.placement.score import Placement

POLICIES: dict[str, Placement] = {
    "round_robin": round_robin,
    "least_loaded": least_loaded,
    "memory_aware": memory_aware,
}
