"""Materialise: run a module with reduced weights, one part of it in full at a time."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from engine.devices.packing import Layout, install
from engine.devices.reduced import ReducedLayout, ReducedSlot, kept, materialise

DEPTHS = (99, 2, 1, 0)
"""How near to the weights they are materialised: at their owner, or further up, at last at
the root. An owner whose parent reaches into it, as attention does, needs the parent."""


@dataclass(slots=True)
class _Part:
    """Hold a reduced tensor: what stands for it in the module, and who needs it now."""

    own: ReducedSlot
    tensor: Tensor
    users: int = 0


class ReducedWeights:
    """Be a module on top of a reduced block that lies wherever `point` says.

    Before a submodule runs, its reduced tensors are made in full; after it,
    they are dropped. So the extra workspace is that of the largest submodule.
    """

    def __init__(
        self,
        skeleton: nn.Module,
        layout: Layout,
        *,
        reduced: ReducedLayout,
        depth: int,
        device: str = "cpu",
    ) -> None:
        """Copy the module, without memory for its tensors.

        Args:
            depth: Components of a weight's path at which it is materialised; 0: the root.
        """
        self.module = copy.deepcopy(skeleton)
        empty = [torch.empty(0, dtype=slot.dtype, device=device) for slot in layout.slots]
        tensors = install(self.module, layout, tensors=empty)
        self._kept: list[tuple[ReducedSlot, Tensor]] = []
        self._block: Tensor | None = None
        parts: dict[str, list[_Part]] = {}
        for own, tensor in zip(reduced.slots, tensors, strict=True):
            if own.form == "full":
                self._kept.append((own, tensor))
                continue
            part = _Part(own, tensor)
            for where in _owners(own, depth):
                parts.setdefault(where, []).append(part)
        for where, group in parts.items():
            self._hook(self.module.get_submodule(where), group)

    def point(self, arena: Tensor, offset: int) -> None:
        """Let the tensors be read from the reduced block at that offset of an arena.

        Args:
            arena: uint8 (bytes,).
            offset: A multiple of 512.
        """
        self._block = arena[offset:]
        with torch.no_grad():
            for own, tensor in self._kept:
                width = own.slot.dtype.itemsize
                start = int(self._block.storage_offset()) + own.offset
                storage = arena.untyped_storage()
                tensor.set_(storage, start // width, own.slot.shape, own.slot.stride)

    def drop(self) -> None:
        """Let the tensors be empty: whoever runs the module now gets an error, no old bytes."""
        self._block = None
        with torch.no_grad():
            for _, tensor in self._kept:
                nothing = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
                tensor.set_(nothing.untyped_storage(), 0, (0,), (1,))

    def _hook(self, module: nn.Module, group: list[_Part]) -> None:
        def before(*_: object) -> None:
            assert self._block is not None, "a model runs while it is loaded"
            with torch.inference_mode(mode=False), torch.no_grad():
                for part in group:
                    if not part.users:
                        part.tensor.data = materialise(self._block, part.own)
                    part.users += 1

        def after(*_: object) -> None:
            with torch.inference_mode(mode=False), torch.no_grad():
                for part in group:
                    part.users = max(0, part.users - 1)
                    if not part.users:
                        part.tensor.data = part.tensor.data.new_empty(0)

        module.register_forward_pre_hook(before)
        module.register_forward_hook(after, always_call=True)


def _owners(own: ReducedSlot, depth: int) -> Iterable[str]:
    """Return the paths of the submodules at which a tensor is materialised."""
    paths = (path.split(".") if path else [] for path, _ in own.slot.places)
    return dict.fromkeys(".".join(path[:depth]) for path in paths)


def scratch_bytes(reduced: ReducedLayout, depth: int) -> int:
    """Return the most bytes that are materialised at one time.

    A submodule runs inside those above it, so what they need counts too.
    """
    groups: dict[str, int] = {}
    for own in reduced.slots:
        if own.form != "full":
            for where in _owners(own, depth):
                groups[where] = groups.get(where, 0) + own.full_bytes
    return max((_nested(where, groups) for where in groups), default=0)


def _nested(where: str, groups: Mapping[str, int]) -> int:
    above = [groups.get("", 0)] if where else []
    parts = where.split(".") if where else []
    above += [groups.get(".".join(parts[:n]), 0) for n in range(1, len(parts))]
    return groups[where] + sum(above)


def full_module(
    skeleton: nn.Module, layout: Layout, *, reduced: ReducedLayout, block: Tensor
) -> nn.Module:
    """Return the module with all of its reduced weights in full: what results should be."""
    tensors = [
        kept(block, own) if own.form == "full" else materialise(block, own)
        for own in reduced.slots
    ]
    module = copy.deepcopy(skeleton)
    install(module, layout, tensors=[tensor.clone() for tensor in tensors])
    return module
