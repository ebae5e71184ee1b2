"""Packing: all tensors of a module in one block of bytes, and the module on top of it."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from engine.units import align_up

ALIGNMENT = 512
_GRAIN = 16  # no dtype is wider, so that a cut at its multiples splits no number

Place = tuple[str, str]
"""Path of a submodule and the name of its attribute."""
_Key = tuple[int, tuple[int, ...], tuple[int, ...], torch.dtype, bool]


@dataclass(frozen=True, slots=True)
class Slot:
    """Say where one tensor lies in the block, and where in the module it is used.

    Attributes:
        offset: Of its first number, in numbers of its dtype from the block's start.
        places: More than one where weights are tied.
    """

    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    is_parameter: bool
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """List the slots of a block and its size, which is aligned and more than 0."""

    slots: tuple[Slot, ...]
    size_bytes: int


@dataclass(slots=True)
class _Span:
    """Collect which bytes of a storage are used, and where they will lie."""

    storage: torch.UntypedStorage
    start: int
    end: int
    offset: int = 0


def pack(module: nn.Module) -> tuple[Layout, Tensor]:
    """Copy all parameters and buffers of a module into one block.

    Tensors that share memory, as tied weights do, share it in the block too;
    of a storage only the bytes between its first and last used one are taken.
    Strides are kept, so that a channels-last model stays one.

    Returns:
        The layout, and the block: uint8 (size_bytes,) in host memory.

    Raises:
        TypeError: A tensor is not a plain dense one in host memory.
    """
    found = list(_tensors(module))
    spans = _spans([tensor for _, tensor, _ in found])
    size_bytes = ALIGNMENT
    for number, span in enumerate(spans.values()):
        span.offset = size_bytes if number else 0
        size_bytes = align_up(span.offset + max(1, span.end - span.start), ALIGNMENT)
    block = torch.zeros(size_bytes, dtype=torch.uint8)
    for span in spans.values():
        length = span.end - span.start
        source = torch.empty(0, dtype=torch.uint8).set_(
            span.storage, span.start, (length,), (1,)
        )
        block[span.offset : span.offset + length].copy_(source)
    return Layout(_slots(found, spans), size_bytes), block


def _tensors(module: nn.Module) -> Iterator[tuple[Place, Tensor, bool]]:
    """Yield every use of a tensor: where, which, and whether it is a parameter."""
    for path, part in module.named_modules():
        for name, parameter in part.named_parameters(recurse=False, remove_duplicate=False):
            yield (path, name), parameter, True
        for name, buffer in part.named_buffers(recurse=False, remove_duplicate=False):
            yield (path, name), buffer, False


def _first_byte(tensor: Tensor) -> int:
    return int(tensor.storage_offset()) * tensor.element_size()


def _spans(tensors: list[Tensor]) -> dict[int, _Span]:
    """Return the used span of every storage, by its address, in order of appearance."""
    spans: dict[int, _Span] = {}
    for tensor in tensors:
        if tensor.layout != torch.strided or tensor.device.type != "cpu":
            raise TypeError(
                f"found a {tensor.layout} tensor on {tensor.device}, wanted dense ones on cpu"
            )
        storage = tensor.untyped_storage()
        reach = sum(
            (n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True)
        )
        start = _first_byte(tensor)
        end = start + (reach + 1) * tensor.element_size() if tensor.numel() else start
        start -= start % _GRAIN
        span = spans.setdefault(storage.data_ptr(), _Span(storage, start, end))
        span.start, span.end = min(span.start, start), max(span.end, end)
    return spans


def _slots(
    found: list[tuple[Place, Tensor, bool]], spans: dict[int, _Span]
) -> tuple[Slot, ...]:
    """Return one slot per distinct tensor, with all of its places."""
    places: dict[_Key, list[Place]] = {}
    for place, tensor, is_parameter in found:
        span = spans[tensor.untyped_storage().data_ptr()]
        offset = span.offset + _first_byte(tensor) - span.start
        shape, stride = tuple(tensor.shape), tensor.stride()
        key = (offset // tensor.element_size(), shape, stride, tensor.dtype, is_parameter)
        places.setdefault(key, []).append(place)
    return tuple(_slot(key, tuple(used)) for key, used in places.items())


def _slot(key: _Key, places: tuple[Place, ...]) -> Slot:
    offset, shape, stride, dtype, is_parameter = key
    return Slot(offset, shape, stride, dtype, is_parameter, places)


class Weights:
    """Be a module whose tensors lie wherever `point` says.

    There is one per model and device; `module` keeps its identity through
    loads, moves and evictions, only its tensors change where they look.
    """

    __slots__ = ("_slots", "_tensors", "module")

    def __init__(self, skeleton: nn.Module, layout: Layout, *, device: str = "cpu") -> None:
        """Copy the module, without memory for its tensors."""
        self.module = copy.deepcopy(skeleton)
        self._slots = layout.slots
        empty = [torch.empty(0, dtype=slot.dtype, device=device) for slot in layout.slots]
        self._tensors = install(self.module, layout, tensors=empty)

    def point(self, arena: Tensor, offset: int) -> None:
        """Let the tensors be views of the packed block at that offset of an arena.

        Args:
            arena: uint8 (bytes,).
            offset: A multiple of 512.
        """
        storage = arena.untyped_storage()
        offset += int(arena.storage_offset())
        with torch.no_grad():
            for tensor, slot in zip(self._tensors, self._slots, strict=True):
                start = offset // slot.dtype.itemsize + slot.offset
                tensor.set_(storage, start, slot.shape, slot.stride)

    def drop(self) -> None:
        """Let the tensors be empty: whoever runs the module now gets an error, no old bytes."""
        with torch.no_grad():
            for tensor in self._tensors:
                nothing = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
                tensor.set_(nothing.untyped_storage(), 0, (0,), (1,))


def install(module: nn.Module, layout: Layout, *, tensors: list[Tensor]) -> list[Tensor]:
    """Put one tensor per slot into all of its places and return them as they lie there.

    They are set by name, so that modules which keep further lists of their
    weights, as recurrent ones do, take note.
    """
    installed: list[Tensor] = []
    for slot, tensor in zip(layout.slots, tensors, strict=True):
        if slot.is_parameter:
            tensor = nn.Parameter(tensor, requires_grad=False)  # noqa: PLW2901  # one per slot
        for path, name in slot.places:
            setattr(module.get_submodule(path), name, tensor)
        installed.append(tensor)
    return installed


def make_skeleton(module: nn.Module, layout: Layout) -> nn.Module:
    """Take a module's memory away and leave shapes and dtypes, for copies and dry runs."""
    shapes = [
        torch.empty_strided(slot.shape, slot.stride, dtype=slot.dtype, device="meta")
        for slot in layout.slots
    ]
    install(module, layout, tensors=shapes)
    return module
