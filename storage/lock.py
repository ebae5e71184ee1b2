"""Lock: one process owns a store; the system frees the lock when the process dies, however."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from engine.errors import StoreError


class OwnerLock:
    """Hold the lock file beside a store for the life of the process."""

    def __init__(self, path: Path) -> None:
        """Take the lock.

        Raises:
            StoreError: Another process owns the store, or the folder cannot be written.
        """
        self._path = path
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreError(
                f"{path.parent}: cannot write there ({error.strerror}); "
                "choose another --store or make the folder writable"
            ) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.read(self._file, 200).decode(errors="replace").strip()
            os.close(self._file)
            raise StoreError(
                f"{path.with_suffix('')}: in use by process {owner or 'unknown'}; "
                "stop it, choose another --store, or open it read-only"
            ) from error
        os.ftruncate(self._file, 0)
        started = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
        os.write(self._file, f"{os.getpid()} (since {started} UTC)\n".encode())

    def release(self) -> None:
        """Let another process own the store."""
        os.close(self._file)
