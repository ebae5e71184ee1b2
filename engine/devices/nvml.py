"""NVML: what the driver itself says of a card's memory."""

from __future__ import annotations

import contextlib
from typing import Protocol, cast


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
        try:
            memory = self._library.nvmlDeviceGetMemoryInfo(self._handle)
        except Exception:  # noqa: BLE001  # pynvml makes its errors at run time
            return 0
        return int(memory.total) - int(memory.free)

    def close(self) -> None:
        """Stop asking; idempotent."""
        self._handle = None
        if self._is_started:
            self._is_started = False
            self._library.nvmlShutdown()


def _pynvml() -> NvmlLibrary:
    import pynvml  # it loads the driver's library, which most machines lack

    return cast(NvmlLibrary, pynvml)
