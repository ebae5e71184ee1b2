"""NVML: used is what is not free, and no driver means no answer."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.devices.nvml import Nvml


@dataclass
class Memory:
    total: int
    free: int


@dataclass
class Driver:
    """Stand for pynvml: one card, or none."""

    card: str = "GPU-1"
    memory: Memory = field(default_factory=lambda: Memory(100, 30))
    starts: int = 0
    is_lost: bool = False

    def nvmlInit(self) -> None:  # noqa: N802  # NVML's own name
        self.starts += 1

    def nvmlShutdown(self) -> None:  # noqa: N802  # NVML's own name
        self.starts -= 1

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> object:  # noqa: N802  # NVML's own name
        if uuid != self.card:
            raise LookupError(uuid)
        return uuid

    def nvmlDeviceGetMemoryInfo(self, handle: object) -> Memory:  # noqa: N802  # NVML's name
        assert handle == self.card
        if self.is_lost:
            raise OSError("the card has fallen off the bus")
        return self.memory


def test_used_is_all_that_is_not_free() -> None:
    assert Nvml("GPU-1", Driver()).used_bytes() == 70


def test_a_card_that_is_not_there_or_lost_has_no_answer() -> None:
    driver = Driver()
    assert Nvml("GPU-2", driver).used_bytes() == 0
    nvml = Nvml("GPU-1", driver)
    driver.is_lost = True
    assert nvml.used_bytes() == 0


def test_it_is_stopped_as_often_as_it_was_started() -> None:
    driver = Driver()
    nvml = Nvml("GPU-1", driver)
    nvml.close()
    nvml.close()
    assert driver.starts == 0
    assert nvml.used_bytes() == 0
    Nvml("GPU-2", driver).close()
    assert driver.starts == 0
