"""Profile: what a model costs on a kind of device, in bytes and nanoseconds, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

Spread = Literal["none", "normal", "exponential"]


class ProfileKey(NamedTuple):
    """Say what was measured: a model on a kind of device, at a precision and item shape.

    An empty `shape` stands for every shape of the model that has no profile of
    its own.
    """

    model: str
    device_kind: str
    precision: str = "fp32"
    shape: tuple[int, ...] = ()
    active_devices: int = 1


@dataclass(frozen=True, slots=True)
class Latency:
    """Give the time of a batch as `max(floor, fixed + per_item * items)`.

    Eager execution is bound by launches at small batches, so that a plain line
    misses there; a floor repairs it. `sigma` is the relative spread of single
    batches for `normal`; `exponential` multiplies by a draw of mean 1.
    """

    floor_ns: int
    fixed_ns: int
    per_item_ns: int
    spread: Spread = "none"
    sigma: float = 0.0

    def at(self, items: int) -> int:
        """Return the expected nanoseconds of a batch of `items` (at least 1)."""
        return max(self.floor_ns, self.fixed_ns + self.per_item_ns * items)


@dataclass(frozen=True, slots=True)
class Profile:
    """State sizes and latency of one model on one kind of device.

    Attributes:
        weight_bytes: Packed weights, as the arena holds them.
        workspace_fixed_bytes: Part of a lease that does not grow with the batch.
        workspace_item_bytes: Part of a lease per item: input, output, activations.
        points: Measured (items, nanoseconds), the base of the fit.
        output_change: Relative change (L2) of the output on the example input, against
            full precision; 0 at full precision.
        source: How it was made: measured here, planned, or published where.
    """

    key: ProfileKey
    weight_bytes: int
    workspace_fixed_bytes: int
    workspace_item_bytes: int
    latency: Latency
    points: tuple[tuple[int, int], ...] = ()
    source: str = ""
    output_change: float = 0.0

    def workspace_bytes(self, items: int) -> int:
        """Return the size in bytes of a lease for a batch of `items`."""
        return self.workspace_fixed_bytes + self.workspace_item_bytes * items

    def max_items(self, free_bytes: int) -> int:
        """Return the largest batch whose lease fits into `free_bytes`; 0 if none does."""
        left = free_bytes - self.workspace_fixed_bytes
        if left < 0:
            return 0
        return left // self.workspace_item_bytes if self.workspace_item_bytes else left
