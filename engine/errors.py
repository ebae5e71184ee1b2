"""Errors: what a user or a device can cause, by whose move it is."""

from __future__ import annotations


class EngineError(Exception):
    """Be the root of all that the engine raises on purpose.

    A message says what was wanted and what was found, on one line: it ends up
    in tables and logs.
    """

    def __init__(self, message: str) -> None:
        """Keep the message, its lines joined."""
        super().__init__(" ".join(line.strip() for line in message.splitlines()))


class PolicyError(EngineError):
    """Say that a setting cannot be applied: fix the setting."""


class InputError(EngineError):
    """Say that a call cannot be answered as it is: fix the call."""


class RequestError(EngineError):
    """Be the root of how a request can end without a result."""


class Refused(RequestError):
    """Say that a request was not let in; raised by `submit`.

    Attributes:
        limit: Name of the limit that bound.
        wanted: What the request needed of it.
        found: What was left of it.
        retry_after_ms: When it may fit; 0 when waiting does not help.
    """

    def __init__(
        self, message: str, *, limit: str, wanted: int, found: int, retry_after_ms: float
    ) -> None:
        """Keep the limit and its numbers."""
        super().__init__(message)
        self.limit = limit
        self.wanted = wanted
        self.found = found
        self.retry_after_ms = retry_after_ms


class Expired(RequestError):
    """Say that a request was dropped because its deadline could not be met."""


class Cancelled(RequestError):
    """Say that a request was called off by its caller."""


class Failed(RequestError):
    """Say that a request's batch, its model or its device failed."""


class OutOfMemoryError(EngineError):
    """Say that a block or a batch did not fit; nothing has changed.

    Attributes:
        wanted_bytes: What was asked for; None if the device did not say.
        free_bytes: What was free, in one piece or many; None if unknown.
        largest_hole_bytes: The largest of the pieces; None if unknown.
    """

    def __init__(
        self,
        message: str,
        *,
        wanted_bytes: int | None = None,
        free_bytes: int | None = None,
        largest_hole_bytes: int | None = None,
    ) -> None:
        """Keep the sizes, as far as they are known."""
        super().__init__(message)
        self.wanted_bytes = wanted_bytes
        self.free_bytes = free_bytes
        self.largest_hole_bytes = largest_hole_bytes


class DeviceError(EngineError):
    """Say that a device does not do what it should."""


class StoreError(EngineError):
    """Say that something stored cannot be read or written."""
