"""Keyframes: where all weights lay, once a minute; between them the decisions tell."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar, cast

from sqlalchemy import RowMapping, select

from engine.memory.replay import DeviceBlocks
from engine.memory.state import BlockState
from storage.queries import Query
from storage.schema import KEYFRAMES
from storage.writer import Writer

V = TypeVar("V")


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
        """Return the last one at or before an instant; None if there is none."""
        table = KEYFRAMES.c
        query = select(KEYFRAMES).where(table.at_ms <= at_ms)
        found = self._read(
            query.order_by(table.at_ms.desc(), table.id.desc()).limit(1), _keyframe
        )
        return found[0] if found else None

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


def _keyframe(row: RowMapping) -> Keyframe:
    document = json.loads(zlib.decompress(row["document"]))
    devices = tuple(
        DeviceBlocks(
            part["device"],
            part["arena_bytes"],
            part["guard_bytes"],
            tuple(
                BlockState(offset, size, "resident", model)
                for offset, size, model in part["blocks"]
            ),
        )
        for part in document
    )
    return Keyframe(row["at_ms"], row["at_ns"], devices)
