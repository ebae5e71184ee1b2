"""Errors: one leaf for each party whose move it is."""

from __future__ import annotations


class EngineError(Exception):
    """Be the base of all errors that a user or a device can cause."""


class PolicyError(EngineError):
    """A setting is wrong; fix the setting."""


class InputError(EngineError):
    """A call is wrong; fix the call."""


class StoreError(EngineError):
    """The store cannot be read or written; its message says what to do."""


class OutOfMemoryError(EngineError):
    """A device or a pool has no room of the wanted size.

    Attributes:
        wanted_bytes: What was asked for.
        free_bytes: What is free in all.
        largest_hole_bytes: What is free in one piece.
    """

    def __init__(
        self,
        message: str,
        *,
        wanted_bytes: int = 0,
        free_bytes: int = 0,
        largest_hole_bytes: int = 0,
    ) -> None:
        """Keep the sizes beside the message."""
        super().__init__(message)
        self.wanted_bytes = wanted_bytes
        self.free_bytes = free_bytes
        self.largest_hole_bytes = largest_hole_bytes


class DeviceError(EngineError):
    """A device is lost until the process restarts."""


class RequestError(EngineError):
    """Be the base of what can become of a request besides a result."""


class Refused(RequestError):
    """A limit bound at once; raised by `submit`.

    Attributes:
        limit: Name of the limit.
        wanted: What the request needed of it.
        found: What there was left.
        retry_after_ms: When it may fit; 0 when waiting does not help.
    """

    def __init__(
        self,
        message: str,
        *,
        limit: str = "",
        wanted: int = 0,
        found: int = 0,
        retry_after_ms: float = 0.0,
    ) -> None:
        """Keep the numbers beside the message."""
        super().__init__(message)
        self.limit = limit
        self.wanted = wanted
        self.found = found
        self.retry_after_ms = retry_after_ms


class Expired(RequestError):
    """The request's deadline passed before it ran."""


class Cancelled(RequestError):
    """The caller took the request back."""


class Failed(RequestError):
    """The model, or the load of it, failed for this request."""
