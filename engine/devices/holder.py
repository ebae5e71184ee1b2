"""Holder: whose weights lie where in an arena, at which precision, with which module."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from engine.devices.materialise import ReducedWeights
from engine.devices.packing import Weights
from engine.devices.reduced import write_reduced
from engine.devices.weights import Images
from engine.errors import InputError
from engine.rules import PRECISIONS, Precision

FULL = PRECISIONS[0]


@dataclass(frozen=True, slots=True)
class Place:
    """Say where a model's weights lie."""

    offset: int
    size_bytes: int
    precision: Precision


class Holder:
    """Keep one module per model and precision, and point it at the arena.

    A module keeps its identity through loads, moves, evictions and
    conversions; only its tensors change where they look.
    """

    def __init__(self, images: Images, arena: Tensor, *, device: str = "cpu") -> None:
        """Hold nothing.

        Args:
            arena: uint8 (bytes,) on that device.
        """
        self._images = images
        self._arena = arena
        self._device = device
        self._places: dict[str, Place] = {}
        self._modules: dict[tuple[str, Precision], Weights | ReducedWeights] = {}

    def __contains__(self, model: str) -> bool:
        """Return whether a model's weights lie here."""
        return model in self._places

    def place(self, model: str) -> Place:
        """Return where a model's weights lie."""
        return self._places[model]

    def module(self, model: str) -> nn.Module:
        """Return a module that computes with the weights that lie here."""
        return self._modules[model, self._places[model].precision].module

    def held_bytes(self) -> int:
        """Return the bytes of all weights that lie here; may be asked from any thread."""
        return sum(place.size_bytes for place in list(self._places.values()))

    def names(self) -> list[str]:
        """Return whose weights lie here."""
        return sorted(self._places)

    def write(self, model: str, precision: Precision, *, offset: int) -> None:
        """Copy a model's weights from the host into the arena, at that precision."""
        end = offset + self._size_bytes(model, precision)
        assert end <= self._arena.nbytes, "weights lie inside the arena"
        block = self._images.block(model)
        if precision == FULL:
            self._arena[offset:end].copy_(block)
        else:
            lower = self._images.lower(model, precision)
            write_reduced(block, lower.reduced, target=self._arena[offset:end])

    def rewrite(self, model: str, precision: Precision, *, offset: int) -> None:
        """Write a model that lies here anew at another precision; on an error it is as before.

        Args:
            offset: Where it then lies; where it lies now if it becomes smaller.
        """
        place = self._places[model]
        try:
            self.write(model, precision, offset=offset)
        except Exception:
            if offset == place.offset:
                self.write(model, place.precision, offset=offset)
            raise
        self.settle(model, precision, offset=offset)

    def settle(self, model: str, precision: Precision, *, offset: int) -> None:
        """Let the model compute with what was written there; what it had before is dropped."""
        before = self._places.get(model)
        key = (model, precision)
        weights = self._modules.get(key)
        if weights is None:
            weights = self._modules[key] = self._make(model, precision)
        weights.point(self._arena, offset)
        self._places[model] = Place(offset, self._size_bytes(model, precision), precision)
        if before is not None and before.precision != precision:
            self._modules[model, before.precision].drop()

    def forget(self, model: str) -> Place:
        """Let a model have no weights here, and return where they lay."""
        place = self._places.pop(model)
        self._modules[model, place.precision].drop()
        return place

    def close(self) -> None:
        """Let go of everything."""
        for weights in self._modules.values():
            weights.drop()
        self._modules.clear()
        self._places.clear()

    def _size_bytes(self, model: str, precision: Precision) -> int:
        if precision == FULL:
            return self._images[model].size_bytes
        return self._images.lower(model, precision).size_bytes

    def _make(self, model: str, precision: Precision) -> Weights | ReducedWeights:
        image = self._images[model]
        if precision == FULL:
            return Weights(image.skeleton, image.layout, device=self._device)
        lower = self._images.lower(model, precision)
        return lower.weights(image.source(self._images.block(model)), device=self._device)


def known_precision(precision: str) -> Precision:
    """Return a precision by its name.

    Raises:
        InputError: There is none of that name.
    """
    for known in PRECISIONS:
        if known == precision:
            return known
    raise InputError(f"precision: found {precision!r}, wanted one of {', '.join(PRECISIONS)}")
