"""Host tier: packed weights in host memory up to a budget, beyond it in mapped files."""

from __future__ import annotations

import hashlib
import mmap
import os
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from engine.errors import StoreError

_NAME = "weights"
_PREFIX = "millpond-host-"


@dataclass(frozen=True, slots=True)
class HostChange:
    """Say that a model's weights went to a file or came back.

    Attributes:
        trouble: Why they could not go; "" if they did.
    """

    model: str
    size_bytes: int
    is_on_disk: bool
    took_ns: int
    trouble: str = ""


@dataclass(slots=True)
class _Entry:
    """Hold one model's block: in memory, or as a view of a file."""

    block: Tensor
    is_on_disk: bool
    used: int


class HostTier:
    """Keep every model's packed weights where a load can copy them from.

    Those used least recently are written to files first when the budget is
    short, one file each, and mapped: reading them costs the disk's time
    unless the system still has their pages. A block that was handed out stays
    valid whatever happens to its model here. Where a file cannot be written
    the weights stay in memory beyond the budget: bad luck loses no model.
    """

    def __init__(self, folder: Path | None = None) -> None:
        """Keep everything in memory until a budget is set.

        Args:
            folder: Where files may lie; None: the system's place for such.
        """
        self._folder = folder
        self._files = Path()
        self._clean_up: Callable[[], object] | None = None
        self._budget: int | None = None
        self._entries: dict[str, _Entry] = {}
        self._changes: list[HostChange] = []
        self._uses = 0
        self._lock = threading.RLock()

    @property
    def host_bytes(self) -> int:
        """Return the bytes that are kept in memory."""
        with self._lock:
            return sum(e.block.nbytes for e in self._entries.values() if not e.is_on_disk)

    def is_on_disk(self, model: str) -> bool:
        """Return whether a model's weights are a mapped file."""
        with self._lock:
            return self._entries[model].is_on_disk

    def put(self, model: str, block: Tensor) -> None:
        """Keep a model's packed weights; what it had before is forgotten.

        What has to go to files for it, perhaps itself, is told by `changes`.

        Args:
            block: uint8 (bytes,); copied.
        """
        copy = _kept(block)
        with self._lock:
            self._uses += 1
            self._entries[model] = _Entry(copy, False, self._uses)
            self._changes += self._settle()

    def changes(self) -> Sequence[HostChange]:
        """Return what went to files or came back since the last call."""
        with self._lock:
            found, self._changes = self._changes, []
            return found

    def block(self, model: str) -> Tensor:
        """Return a model's packed weights, uint8 (bytes,), to be read only.

        Raises:
            StoreError: Its file is gone or damaged.
        """
        with self._lock:
            entry = self._entries[model]
            self._uses += 1
            entry.used = self._uses
            if entry.is_on_disk and not self._path(model).is_file():
                raise StoreError(
                    f"{model}: its file {self._path(model)} is gone; wanted it to stay while "
                    "the engine runs; the model is built again at its next load"
                )
            return entry.block

    def set_budget(self, budget_bytes: int | None) -> None:
        """Change how many bytes may stay in memory; None: all.

        Shrinking writes files, growing reads back what was used last; blocks
        until that is done.
        """
        with self._lock:
            self._budget = budget_bytes
            self._changes += [*self._settle(), *self._fetch_back()]

    def close(self) -> None:
        """Forget everything and remove the files."""
        with self._lock:
            self._entries.clear()
            if self._clean_up is not None:
                self._clean_up()
                self._clean_up = None

    def _settle(self) -> list[HostChange]:
        """Write the least recently used to files until the rest is within the budget."""
        found: list[HostChange] = []
        if self._budget is None:
            return found
        order = sorted(self._entries, key=lambda model: self._entries[model].used)
        for model in order:
            if self.host_bytes <= self._budget:
                break
            if not self._entries[model].is_on_disk:
                found.append(self._spill(model))
        return found

    def _spill(self, model: str) -> HostChange:
        entry, started_ns = self._entries[model], time.perf_counter_ns()
        size_bytes = entry.block.nbytes
        try:
            entry.block = self._write(model, entry.block)
        except (OSError, SafetensorError) as error:
            return HostChange(model, size_bytes, False, 0, f"{type(error).__name__}: {error}")
        entry.is_on_disk = True
        return HostChange(model, size_bytes, True, time.perf_counter_ns() - started_ns)

    def _fetch_back(self) -> list[HostChange]:
        """Read the most recently used back into memory as far as the budget allows."""
        found: list[HostChange] = []
        order = sorted(self._entries, key=lambda model: -self._entries[model].used)
        for model in order:
            entry = self._entries[model]
            size_bytes = entry.block.nbytes
            has_room = self._budget is None or self.host_bytes + size_bytes <= self._budget
            if not entry.is_on_disk or not has_room:
                continue
            started_ns = time.perf_counter_ns()
            entry.block, entry.is_on_disk = _kept(entry.block), False
            self._path(model).unlink(missing_ok=True)
            took_ns = time.perf_counter_ns() - started_ns
            found.append(HostChange(model, size_bytes, False, took_ns))
        return found

    def _write(self, model: str, block: Tensor) -> Tensor:
        """Write a block to its file, whole or not at all, and return it mapped."""
        path = self._path(model)
        draft = path.with_suffix(".draft")
        save_file({_NAME: block}, draft, metadata={"model": model})
        draft.replace(path)
        mapped = open_block(path)
        if mapped.nbytes != block.nbytes or not torch.equal(mapped, block):
            raise OSError(f"{path.name} does not hold what was written to it")
        return mapped

    def _path(self, model: str) -> Path:
        """Return the file of a model; its name is safe whatever the model is called."""
        if self._clean_up is None:
            if self._folder is not None:
                self._folder.mkdir(parents=True, exist_ok=True)
                _remove_left(self._folder)
            prefix = f"{_PREFIX}{os.getpid()}-"
            self._files = Path(tempfile.mkdtemp(prefix=prefix, dir=self._folder))
            self._clean_up = weakref.finalize(self, _remove, self._files)
        digest = hashlib.sha256(model.encode()).hexdigest()[:16]
        return self._files / f"{digest}.safetensors"


def open_block(path: Path) -> Tensor:
    """Map the block of a file: uint8 (bytes,).

    Raises:
        StoreError: It is not there, cut short, or not such a file.
    """
    try:
        with safe_open(path, framework="pt") as opened:
            block = opened.get_tensor(_NAME)
    except (OSError, SafetensorError, RuntimeError) as error:
        raise StoreError(f"{path}: cannot be read as packed weights: {error}") from error
    if not isinstance(block, Tensor) or block.dtype is not torch.uint8 or block.dim() != 1:
        raise StoreError(f"{path}: found something else than packed weights")
    return block


def _kept(block: Tensor) -> Tensor:
    """Return a copy in memory of its own, which goes back to the system when it is dropped."""
    if not block.nbytes:
        return block.clone()
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    memory = mmap.mmap(-1, block.nbytes, flags=flags)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)  # it is read from end to end: fewer misses
    copy = torch.frombuffer(memory, dtype=torch.uint8)
    copy.copy_(block)
    return copy


def _remove(files: Path) -> None:
    shutil.rmtree(files, ignore_errors=True)


def _remove_left(folder: Path) -> None:
    """Remove what processes left that were killed."""
    for left in folder.glob(f"{_PREFIX}*"):
        pid = left.name.removeprefix(_PREFIX).partition("-")[0]
        if not pid.isdecimal() or psutil.pid_exists(int(pid)):
            continue
        for path in left.glob("*"):
            path.unlink(missing_ok=True)
        left.rmdir()
