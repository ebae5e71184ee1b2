"""A driver that is not there: `pynvml`'s functions over cards that a test makes.

It answers with `pynvml`'s own structures and raises its own errors, so that
the code under test meets what it would meet on a machine with a card.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pynvml

LOST = pynvml.NVML_ERROR_GPU_IS_LOST
UNSUPPORTED = pynvml.NVML_ERROR_NOT_SUPPORTED


@dataclass
class Card:
    """Be one card; `refuses` names the functions that it does not support."""

    total: int = 16 << 30
    free: int = 12 << 30
    gpu: int = 73
    memory: int = 20
    milliwatts: int = 250_500
    celsius: int = 61
    processes: dict[int, int | None] = field(default_factory=dict)
    refuses: set[str] = field(default_factory=set)
    is_lost: bool = False


@dataclass
class FakeNvml:
    """Be `pynvml` on a machine with these cards, by UUID; None: without a driver."""

    cards: dict[str, Card] | None
    starts: int = 0

    def nvmlInit(self) -> None:
        if self.cards is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)
        self.starts += 1

    def nvmlShutdown(self) -> None:
        if not self.starts:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_UNINITIALIZED)
        self.starts -= 1

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> object:
        if not self.starts:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_UNINITIALIZED)
        if uuid not in (self.cards or {}):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return uuid

    def nvmlDeviceGetMemoryInfo(self, handle: object, version: int | None = None) -> object:
        card = self._card(handle, "nvmlDeviceGetMemoryInfo")
        reserved = 300 << 20  # the driver's share: in `used` with some drivers only
        return pynvml.c_nvmlMemory_v2_t(
            total=card.total, reserved=reserved, free=card.free, used=card.total - card.free
        )

    def nvmlDeviceGetUtilizationRates(self, handle: object) -> object:
        card = self._card(handle, "nvmlDeviceGetUtilizationRates")
        return pynvml.c_nvmlUtilization_t(gpu=card.gpu, memory=card.memory)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: object) -> list[object]:
        card = self._card(handle, "nvmlDeviceGetComputeRunningProcesses")
        found: list[object] = []
        for pid, size in card.processes.items():
            process = pynvml.nvmlStructToFriendlyObject(pynvml.c_nvmlProcessInfo_v3_t(pid=pid))
            process.usedGpuMemory = size
            found.append(process)
        return found

    def nvmlDeviceGetPowerUsage(self, handle: object) -> int:
        return self._card(handle, "nvmlDeviceGetPowerUsage").milliwatts

    def nvmlDeviceGetTemperature(self, handle: object, sensor: int) -> int:
        card = self._card(handle, "nvmlDeviceGetTemperature")
        assert sensor == pynvml.NVML_TEMPERATURE_GPU
        return card.celsius

    def _card(self, handle: object, function: str) -> Card:
        card = (self.cards or {})[str(handle)]
        if card.is_lost:
            raise pynvml.NVMLError(LOST)
        if function in card.refuses:
            raise pynvml.NVMLError(UNSUPPORTED)
        return card


FUNCTIONS: dict[str, Callable[..., object]] = {
    name: value for name, value in vars(FakeNvml).items() if name.startswith("nvml")
}
