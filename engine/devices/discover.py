"""Discover: devices from a short text such as `cpu:2x1GiB`, described and opened."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence

import psutil
import torch

from engine.devices.catalog import CARDS, make_simulated
from engine.devices.cpu import CpuDevice
from engine.devices.cuda import CudaDevice, describe_cuda
from engine.devices.simulated import SimulatedDevice
from engine.devices.weights import Images
from engine.errors import InputError
from engine.ports import Device
from engine.reserve import cpu_parts, size_of
from engine.spec import DeviceSpec
from engine.units import GIB, KIB, MIB, align_up, format_bytes

_ACCEPTED = (
    "auto, cpu, cpu:2, cpu:2x1GiB, cuda, cuda:0,1, sim:V100-16G, sim:8xV100-16G "
    f"(cards: {', '.join(CARDS)})"
)
_CPU_SHARE = 4  # a quarter of the memory, so that the machine stays usable beside it
_CPU_SMALLEST_BYTES = 16 * MIB
_CPU_BYTES_PER_S = 4e9  # a copy into pages that the system must first clear; measured 2 to 8
_MOVE_BYTES_PER_S = 8e9  # a copy inside memory that is there: one thread reads and writes
_MANY = 4096
_UNITS = {"KiB": KIB, "MiB": MIB, "GiB": GIB}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)(KiB|MiB|GiB)")


def parse_devices(text: str) -> tuple[DeviceSpec, ...]:
    """Return the devices that a text names.

    `auto` stands for all CUDA devices, or else for one CPU device per
    physical core less one, which is left to callers, pages and the loader.
    CPU devices share a quarter of the memory unless a size is given.

    Raises:
        InputError: The text is not understood, or names what is not there.
    """
    kind, _, rest = text.strip().partition(":")
    if kind == "auto" and not rest:
        return _all_cuda() or _cpu("")
    if kind == "cpu":
        return _cpu(rest)
    if kind == "cuda":
        return _cuda(rest)
    if kind == "sim" and rest:
        return _simulated(rest)
    raise _not_understood(text)


def open_devices(specs: Sequence[DeviceSpec], images: Images) -> list[Device]:
    """Open devices; what was opened before one fails is closed again.

    Raises:
        OutOfMemoryError: An arena cannot be had.
        DeviceError: A CUDA device does not answer.
    """
    with contextlib.ExitStack() as undo:
        opened: list[Device] = []
        for spec in specs:
            device = _open(spec, images)
            undo.callback(device.close)
            opened.append(device)
        undo.pop_all()
    return opened


def _open(spec: DeviceSpec, images: Images) -> Device:
    match spec.kind:
        case "cpu":
            return CpuDevice(spec, images)
        case "cuda":
            return CudaDevice(spec, images)
        case "simulated":
            return SimulatedDevice(spec, images)


def _cpu(rest: str) -> tuple[DeviceSpec, ...]:
    count_text, _, size_text = rest.partition("x")
    count = max(1, _cores() - 1) if not rest else _count(count_text, "cpu", rest=rest)
    if "x" in rest:
        pool_bytes, source = _size(size_text, rest), "size given"
    else:
        memory = psutil.virtual_memory().total
        pool_bytes = memory // _CPU_SHARE // count
        source = f"a quarter of {format_bytes(memory)}, shared by {count}"
    pool_bytes = align_up(pool_bytes, MIB)
    if pool_bytes < _CPU_SMALLEST_BYTES:
        raise InputError(
            f"cpu:{rest}: found a pool of {format_bytes(pool_bytes)}, "
            f"wanted {format_bytes(_CPU_SMALLEST_BYTES)} at least"
        )
    return tuple(
        _describe_cpu(f"cpu:{index}", pool_bytes, source=source) for index in range(count)
    )


def _cores() -> int:
    """Return the physical cores that this process may use."""
    allowed = len(psutil.Process().cpu_affinity())
    return min(psutil.cpu_count(logical=False) or allowed, allowed)


def _describe_cpu(name: str, pool_bytes: int, *, source: str) -> DeviceSpec:
    """Describe a CPU device; its reserve is what torch's libraries keep per thread."""
    parts = cpu_parts()
    reserve = size_of(parts)
    return DeviceSpec(
        name,
        "cpu",
        pool_bytes + reserve,
        reserve,
        addressed=False,
        load_bytes_per_s=_CPU_BYTES_PER_S,
        move_bytes_per_s=_MOVE_BYTES_PER_S,
        source=f"one core of this machine; pool: {source}",
        reserve_parts=parts,
    )


def _all_cuda() -> tuple[DeviceSpec, ...]:
    return tuple(describe_cuda(index) for index in range(torch.cuda.device_count()))


def _cuda(rest: str) -> tuple[DeviceSpec, ...]:
    found = torch.cuda.device_count()
    if not found:
        raise InputError(f"cuda:{rest}: there is no CUDA device; use auto or cpu")
    if not rest:
        return _all_cuda()
    parts = rest.split(",")
    if not all(part.isdecimal() for part in parts) or len(set(parts)) != len(parts):
        raise _not_understood(f"cuda:{rest}")
    absent = [part for part in parts if int(part) >= found]
    if absent:
        raise InputError(f"cuda:{rest}: no device {', '.join(absent)}; there are {found}")
    return tuple(describe_cuda(int(part)) for part in parts)


def _simulated(rest: str) -> tuple[DeviceSpec, ...]:
    match = re.fullmatch(r"(?:(\d+)x)?(.+)", rest)
    assert match is not None, "the text is not empty"
    count = _count(match[1], "sim", rest=rest) if match[1] else 1
    return tuple(make_simulated(f"sim:{index}", match[2]) for index in range(count))


def _count(text: str, kind: str, *, rest: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _MANY:
        raise _not_understood(f"{kind}:{rest}")
    return int(text)


def _size(text: str, rest: str) -> int:
    match = _SIZE.fullmatch(text)
    if match is None:
        raise _not_understood(f"cpu:{rest}")
    return round(float(match[1]) * _UNITS[match[2]])


def _not_understood(text: str) -> InputError:
    return InputError(f"devices: found {text!r}, wanted one of {_ACCEPTED}")
