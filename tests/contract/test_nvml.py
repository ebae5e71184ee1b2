"""Contract with NVML: what is asked is what `pynvml` offers, and no answer disturbs nobody."""

from __future__ import annotations

import inspect
import os

import pynvml
import pytest

from engine.devices.nvml import Nvml, NvmlLibrary
from engine.ports import Telemetry
from tests.contract.fake_nvml import FUNCTIONS, Card, FakeNvml

GIB = 1 << 30
ASKED = [name for name in vars(NvmlLibrary) if name.startswith("nvml")]


@pytest.mark.parametrize("name", ASKED)
def test_every_function_that_is_asked_is_pynvml_s_with_the_same_arguments(name: str) -> None:
    wanted = list(inspect.signature(getattr(NvmlLibrary, name)).parameters)[1:]
    for there in (getattr(pynvml, name), FUNCTIONS[name]):
        parameters = inspect.signature(there).parameters
        found = [n for n, p in parameters.items() if p.default is p.empty and n != "self"]
        assert found == wanted


def test_used_is_all_that_is_not_free_whatever_the_driver_calls_used() -> None:
    assert Nvml("GPU-1", FakeNvml({"GPU-1": Card()})).used_bytes() == 4 * GIB


def test_telemetry_tells_other_processes_from_this_one() -> None:
    processes: dict[int, int | None] = {os.getpid(): 2 * GIB, 1: GIB, 2: None}
    card = Card(processes=processes)
    found = Nvml("GPU-1", FakeNvml({"GPU-0": Card(free=0), "GPU-1": card})).telemetry()
    assert found == Telemetry(16 * GIB, 4 * GIB, GIB, 0.73, 0.2, 250.5, 61)


@pytest.mark.parametrize(
    ("function", "field"),
    [
        ("nvmlDeviceGetUtilizationRates", "busy"),
        ("nvmlDeviceGetUtilizationRates", "memory_busy"),
        ("nvmlDeviceGetComputeRunningProcesses", "others_bytes"),
        ("nvmlDeviceGetPowerUsage", "power_w"),
        ("nvmlDeviceGetTemperature", "temperature_c"),
    ],
)
def test_what_a_card_does_not_support_is_none_and_the_rest_is_told(
    function: str, field: str
) -> None:
    nvml = Nvml("GPU-1", FakeNvml({"GPU-1": Card(refuses={function})}))
    found = nvml.telemetry()
    assert found is not None
    assert getattr(found, field) is None
    assert found.used_bytes == 4 * GIB


def test_a_card_that_is_lost_has_no_answer_and_may_come_back() -> None:
    card = Card()
    nvml = Nvml("GPU-1", FakeNvml({"GPU-1": card}))
    card.is_lost = True
    assert nvml.used_bytes() == 0
    assert nvml.telemetry() is None
    card.is_lost = False
    assert nvml.used_bytes() == 4 * GIB


@pytest.mark.parametrize("driver", [FakeNvml(None), FakeNvml({}), FakeNvml({"GPU-2": Card()})])
def test_without_driver_or_card_nothing_is_known(driver: FakeNvml) -> None:
    nvml = Nvml("GPU-1", driver)
    assert nvml.used_bytes() == 0
    assert nvml.telemetry() is None
    nvml.close()
    assert driver.starts == 0


def test_it_is_stopped_as_often_as_it_was_started() -> None:
    driver = FakeNvml({"GPU-1": Card()})
    nvml = Nvml("GPU-1", driver)
    nvml.close()
    nvml.close()
    assert driver.starts == 0
    assert nvml.used_bytes() == 0
