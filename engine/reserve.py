"""Reserve: bytes that are never lent, and for what each of them is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.units import GIB, KIB, MIB

CONTEXT_BYTES = GIB // 2
"""A CUDA context with lazily loaded kernels: 300 to 426 MiB seen, rounded up.

Source: PyTorch pull request 86509; unsloth-zoo pull request 1053.
"""
SMALL_LIBRARY_BYTES = 8 * MIB
LARGE_LIBRARY_BYTES = 32 * MIB
"""cuBLAS's workspace per stream, up to Ampere and from Hopper on; torch allocates it."""
LIBRARIES_PER_WORKER = 2
SLACK = 0.05
LEAST_SHARE = 0.06
CPU_LIBRARY_BYTES = 64 * MIB
"""What oneDNN and torch keep per worker thread on a CPU; measured below it."""
CHANNEL_BYTES = 4 * MIB + 512 * KIB + 120 * 640 * 8 * 8
"""NCCL's buffers per connection and channel: simple, LL and LL128.

Source: NCCL user guide (NCCL_BUFFSIZE); `src/include/device.h` of NCCL: 8 lines x 512
threads x 8 steps x 16 B, and 120 x 640 x 8 x 8 B.
"""


@dataclass(frozen=True, slots=True)
class ReservePart:
    """Name what a part of the reserve is kept for."""

    name: str
    size_bytes: int
    why: str = ""


def cuda_parts(
    total_bytes: int, *, workers: int = 1, library_bytes: int = LARGE_LIBRARY_BYTES
) -> tuple[ReservePart, ...]:
    """Return what a card keeps back by default: 6 % of it and 1 GiB at least.

    Args:
        total_bytes: All memory of the card.
        workers: Threads that run batches on it.
        library_bytes: cuBLAS's workspace per stream.
    """
    libraries = LIBRARIES_PER_WORKER * library_bytes * workers
    least = max(GIB, int(total_bytes * LEAST_SHARE))
    slack = max(int(total_bytes * SLACK), least - CONTEXT_BYTES - libraries)
    return (
        ReservePart("context", CONTEXT_BYTES, "CUDA context and loaded kernels"),
        ReservePart("libraries", libraries, f"cuBLAS, {LIBRARIES_PER_WORKER} streams a worker"),
        ReservePart("slack", slack, f"driver and its fragments: {SLACK:.0%} of the card"),
    )


def cpu_parts() -> tuple[ReservePart, ...]:
    """Return what a CPU device keeps back by default."""
    return (ReservePart("libraries", CPU_LIBRARY_BYTES, "oneDNN and torch, per worker"),)


def nccl_bytes(connections: int, channels: int) -> int:
    """Return what NCCL allocates on one card.

    A pool that copies between cards without NCCL needs none of it.

    Args:
        connections: Peers that the card sends to or receives from, per direction:
            2 in a ring.
        channels: NCCL's channels, 2 to 32.
    """
    return connections * channels * CHANNEL_BYTES


def size_of(parts: Sequence[ReservePart]) -> int:
    """Return the sum of the parts."""
    return sum(part.size_bytes for part in parts)
