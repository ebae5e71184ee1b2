"""NVML: what the driver itself says of a card's memory."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar, cast

from engine.ports import Telemetry

V = TypeVar("V")
_CORE = 0  # NVML_TEMPERATURE_GPU, the sensor of the chip


class MemoryInfo(Protocol):
    """Be what NVML returns of a card's memory, in bytes."""

    @property
    def total(self) -> int:
        """Return all of it."""
        ...

    @property
    def free(self) -> int:
        """Return what nobody holds."""
        ...


class Rates(Protocol):
    """Be what NVML returns of a card's use, in percent of its last sample period."""

    @property
    def gpu(self) -> int:
        """Return how long one kernel or more ran; says nothing of how full the card was."""
        ...

    @property
    def memory(self) -> int:
        """Return how long memory was read or written; says nothing of how full it was."""
        ...


class RunningProcess(Protocol):
    """Be what NVML returns of a process on a card."""

    @property
    def pid(self) -> int:
        """Return its id."""
        ...

    @property
    def usedGpuMemory(self) -> int | None:  # noqa: N802  # NVML's own name
        """Return the bytes it holds; None: not known here."""
        ...


class NvmlLibrary(Protocol):
    """Name the functions of `pynvml` that are used, under its own names."""

    def nvmlInit(self) -> None:  # noqa: N802  # NVML's own name
        """Start; counted, so that others may start it too."""
        ...

    def nvmlShutdown(self) -> None:  # noqa: N802  # NVML's own name
        """Stop, when it was called as often as the start."""
        ...

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> object:  # noqa: N802  # NVML's own name
        """Return the handle of a card."""
        ...

    def nvmlDeviceGetMemoryInfo(self, handle: object) -> MemoryInfo:  # noqa: N802  # as above
        """Return the sizes of a card's memory."""
        ...

    def nvmlDeviceGetUtilizationRates(self, handle: object) -> Rates:  # noqa: N802  # as above
        """Return the shares of the last sample period, in percent."""
        ...

    def nvmlDeviceGetComputeRunningProcesses(  # noqa: N802  # as above
        self, handle: object
    ) -> Sequence[RunningProcess]:
        """Return who computes on a card, this process included."""
        ...

    def nvmlDeviceGetPowerUsage(self, handle: object) -> int:  # noqa: N802  # as above
        """Return the power that a card takes, in milliwatts."""
        ...

    def nvmlDeviceGetTemperature(  # noqa: N802  # as above
        self, handle: object, sensor: int
    ) -> int:
        """Return a temperature in degrees Celsius."""
        ...


class Nvml:
    """Ask NVML for one card; it needs none of torch's locks, so it may be asked at any time.

    Cards are found by UUID: NVML counts all cards of the machine, CUDA only
    those that the process may see.
    """

    def __init__(self, uuid: str, library: NvmlLibrary | None = None) -> None:
        """Look the card up; without a driver it knows nothing and says so by 0.

        Args:
            library: `pynvml`, or what stands for it.
        """
        self._library = library or _pynvml()
        self._handle: object | None = None
        self._is_started = False
        with contextlib.suppress(Exception):  # pynvml makes its errors at run time
            self._library.nvmlInit()
            self._is_started = True
            self._handle = self._library.nvmlDeviceGetHandleByUUID(uuid)

    def used_bytes(self) -> int:
        """Return what is not free, by whomever it is held; 0 when NVML cannot say.

        Not NVML's own `used`: drivers differ in whether it counts their share.
        """
        if self._handle is None:
            return 0
        library, handle = self._library, self._handle
        memory = _asked(lambda: library.nvmlDeviceGetMemoryInfo(handle))
        return 0 if memory is None else int(memory.total) - int(memory.free)

    def telemetry(self) -> Telemetry | None:
        """Return all that NVML tells of the card; None when it cannot say anything.

        What a card does not support is None in it. NVML has a new sample six
        times a second at most; asking more often gains nothing.
        """
        library, handle = self._library, self._handle
        if handle is None:
            return None
        memory = _asked(lambda: library.nvmlDeviceGetMemoryInfo(handle))
        if memory is None:
            return None
        rates = _asked(lambda: library.nvmlDeviceGetUtilizationRates(handle))
        found = _asked(lambda: library.nvmlDeviceGetComputeRunningProcesses(handle))
        power = _asked(lambda: library.nvmlDeviceGetPowerUsage(handle))
        return Telemetry(
            total_bytes=int(memory.total),
            used_bytes=int(memory.total) - int(memory.free),
            others_bytes=None if found is None else _others_bytes(found),
            busy=None if rates is None else rates.gpu / 100,
            memory_busy=None if rates is None else rates.memory / 100,
            power_w=None if power is None else power / 1000,
            temperature_c=_asked(lambda: library.nvmlDeviceGetTemperature(handle, _CORE)),
        )

    def close(self) -> None:
        """Stop asking; idempotent."""
        self._handle = None
        if self._is_started:
            self._is_started = False
            self._library.nvmlShutdown()


def _asked(ask: Callable[[], V]) -> V | None:
    """Return an answer; None: the card does not support the question, or is gone."""
    try:
        return ask()
    except Exception:  # noqa: BLE001  # pynvml makes its errors at run time
        return None


def _others_bytes(found: Sequence[RunningProcess]) -> int:
    """Return what other processes hold; those that NVML cannot see into count as nothing."""
    own = os.getpid()
    return sum(int(p.usedGpuMemory or 0) for p in found if p.pid != own)


def _pynvml() -> NvmlLibrary:
    import pynvml  # it loads the driver's library, which most machines lack

    return cast(NvmlLibrary, pynvml)
