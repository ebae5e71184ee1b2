"""Keyframes: where all weights lay, once a minute; between them the decisions tell."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypedDict, TypeVar, cast

from sqlalchemy import RowMapping, select

from engine.memory.replay import DeviceBlocks
from engine.memory.state import BlockState
from storage.queries import Query
from storage.schema import KEYFRAMES
from storage.writer import Writer

V = TypeVar("V")
TRIED = 16
"""Keyframes that are tried where the last ones are damaged."""
LAST_MS = 1 << 62
"""Beyond every instant that a store can hold."""


@dataclass(frozen=True, slots=True)
class Keyframe:
    """Hold every device's weights at one instant.

    Attributes:
        at_ms: Wall time; `at_ns` is the same instant on the engine's clock.
    """

    at_ms: int
    at_ns: int
    devices: tuple[DeviceBlocks, ...]


class Read(Protocol):
    """Run a query and turn its rows into values."""

    def __call__(self, query: Query, read: Callable[[RowMapping], V]) -> tuple[V, ...]:
        """Return one value per row."""
        ...


class Keyframes:
    """Keep keyframes and find the one that an instant is rebuilt from."""

    def __init__(self, read: Read, writing: Callable[[], Writer]) -> None:
        """Use a store's way to read and to write."""
        self._read = read
        self._writing = writing

    def append(self, keyframe: Keyframe) -> None:
        """Queue a keyframe; returns at once."""
        row = {
            "at_ms": keyframe.at_ms,
            "at_ns": keyframe.at_ns,
            "document": zlib.compress(_document(keyframe.devices).encode()),
        }
        self._writing().append(KEYFRAMES, [row])

    def before(self, at_ms: int) -> Keyframe | None:
        """Return the last one at or before an instant; None if there is none.

        A damaged row is passed over for the one before it: the decisions since
        that one tell the rest.
        """
        table = KEYFRAMES.c
        query = select(KEYFRAMES).where(table.at_ms <= min(at_ms, LAST_MS))
        latest = query.order_by(table.at_ms.desc(), table.id.desc()).limit(TRIED)
        return next((k for k in self._read(latest, _keyframe) if k is not None), None)

    def times(self) -> tuple[int, ...]:
        """Return the instants of all keyframes in wall milliseconds, the oldest first."""
        query = select(KEYFRAMES.c.at_ms).order_by(KEYFRAMES.c.at_ms)
        return self._read(cast(Query, query), lambda row: int(row["at_ms"]))


def _document(devices: Sequence[DeviceBlocks]) -> str:
    return json.dumps(
        [
            {
                "device": device.name,
                "arena_bytes": device.arena_bytes,
                "guard_bytes": device.guard_bytes,
                "blocks": [[b.offset, b.size_bytes, b.model] for b in device.blocks],
            }
            for device in devices
        ],
        separators=(",", ":"),
    )


def _keyframe(row: RowMapping) -> Keyframe | None:
    """Return a row's keyframe; None: it is damaged."""
    try:
        document = cast(list[_Part], json.loads(zlib.decompress(row["document"])))
        devices = tuple(_device(part) for part in document)
    except (zlib.error, ValueError, TypeError, KeyError, IndexError):
        return None
    return Keyframe(row["at_ms"], row["at_ns"], devices) if devices else None


class _Part(TypedDict):
    """Hold a device in a keyframe's document."""

    device: str
    arena_bytes: int
    guard_bytes: int
    blocks: list[tuple[int, int, str]]


def _device(part: _Part) -> DeviceBlocks:
    blocks = tuple(
        BlockState(int(offset), int(size), "resident", str(model))
        for offset, size, model in part["blocks"]
    )
    return DeviceBlocks(
        str(part["device"]), int(part["arena_bytes"]), int(part["guard_bytes"]), blocks
    )
