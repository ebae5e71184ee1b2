"""Events: all that can happen to the core; every input is one of these and can be recorded."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from engine.profile import Profile
from engine.request import Request
from engine.rules import CompiledPolicy
from engine.spec import DeviceSpec


class Command(StrEnum):
    """Name what an operator can order by hand."""

    LOAD = "load"
    EVICT = "evict"
    COMPACT = "compact"
    CONVERT = "convert"
    DRAIN = "drain"
    UNDRAIN = "undrain"
    PAUSE = "pause"
    RESUME = "resume"


class FailureKind(StrEnum):
    """Say what went wrong on a device, which decides who answers for it."""

    ERROR = "error"
    OUT_OF_MEMORY = "out_of_memory"
    DEVICE_LOST = "device_lost"


@dataclass(slots=True)
class Submitted:
    """A request came in; the core owns the object from now on.

    Not frozen like the others: it is made once per request, and freezing
    doubles what that costs.
    """

    request: Request


@dataclass(frozen=True, slots=True)
class CancelRequested:
    """A caller does not want its result any more."""

    request_id: int


class WorkerReady(NamedTuple):
    """A device's worker was called and is at hand."""

    device: str


class BatchFinished(NamedTuple):
    """A batch ended; `peak_bytes` is the measured workspace, 0 when not measured."""

    batch_id: int
    service_ns: int
    peak_bytes: int = 0


@dataclass(frozen=True, slots=True)
class BatchFailed:
    """A batch ended without results."""

    batch_id: int
    service_ns: int
    failure: FailureKind
    message: str


@dataclass(frozen=True, slots=True)
class LoadFinished:
    """A model's weights are on the device."""

    load_id: int
    took_ns: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class LoadFailed:
    """A load ended without weights; nothing of the model is on the device."""

    load_id: int
    took_ns: int
    failure: FailureKind
    message: str


@dataclass(frozen=True, slots=True)
class EvictFinished:
    """A model's weights are gone from the device."""

    eviction_id: int
    took_ns: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class EvictFailed:
    """An eviction failed: the device does not obey any more and counts as lost."""

    eviction_id: int
    took_ns: int
    message: str


@dataclass(frozen=True, slots=True)
class MoveFinished:
    """A model's weights are at their new offset."""

    move_id: int
    took_ns: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class MoveFailed:
    """A move ended; the weights are where they were."""

    move_id: int
    took_ns: int
    failure: FailureKind
    message: str


@dataclass(frozen=True, slots=True)
class ConvertFinished:
    """A model's weights have their new precision."""

    convert_id: int
    took_ns: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ConvertFailed:
    """A conversion ended; the weights are as they were."""

    convert_id: int
    took_ns: int
    failure: FailureKind
    message: str


@dataclass(frozen=True, slots=True)
class HostCopyFinished:
    """A model's packed weights are in host memory, or in a file that is mapped.

    Attributes:
        size_bytes: Of the packed weights.
        is_on_disk: The host's budget has no room for them: a load reads the file.
    """

    model: str
    took_ns: int
    size_bytes: int
    is_on_disk: bool = False


@dataclass(frozen=True, slots=True)
class HostCopyFailed:
    """A model's weights could not be read or built."""

    model: str
    took_ns: int
    message: str


@dataclass(frozen=True, slots=True)
class ProfileUpdated:
    """Sizes or latency of a model on a kind of device are known (better) now."""

    profile: Profile


@dataclass(frozen=True, slots=True)
class TruthSampled:
    """A device reports what it holds itself (NVML, live bytes), books aside."""

    device: str
    used_bytes: int


@dataclass(frozen=True, slots=True)
class PolicyChanged:
    """A policy version takes effect between two steps."""

    policy: CompiledPolicy
    author: str
    reason: str


@dataclass(frozen=True, slots=True)
class OperatorCommand:
    """An operator orders something by hand; empty names mean any device or all models.

    Attributes:
        size_bytes: Hole that a compaction is to open; 0: as large as it can.
        precision: What a conversion is to end with.
    """

    command: Command
    author: str
    model: str = ""
    device: str = ""
    size_bytes: int = 0
    precision: str = ""


@dataclass(frozen=True, slots=True)
class DeviceAdded:
    """A device can be used from now on."""

    spec: DeviceSpec


@dataclass(frozen=True, slots=True)
class DeviceLost:
    """A device is gone until the process restarts, with all that was on it."""

    device: str
    message: str


@dataclass(frozen=True, slots=True)
class TimePassed:
    """The instant of the last wake-up has come."""


@dataclass(frozen=True, slots=True)
class SnapshotDue:
    """Somebody wants to see the engine."""


Event = (
    Submitted
    | CancelRequested
    | WorkerReady
    | BatchFinished
    | BatchFailed
    | LoadFinished
    | LoadFailed
    | EvictFinished
    | EvictFailed
    | MoveFinished
    | MoveFailed
    | ConvertFinished
    | ConvertFailed
    | HostCopyFinished
    | HostCopyFailed
    | ProfileUpdated
    | TruthSampled
    | PolicyChanged
    | OperatorCommand
    | DeviceAdded
    | DeviceLost
    | TimePassed
    | SnapshotDue
)
