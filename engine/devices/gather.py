"""Gather: the parts of a batch as one tensor, and its output as one piece per part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import torch
from torch import Tensor

from engine.ports import Payload

Part = np.ndarray | Tensor
_WASTE = 2  # a kept output may hold so many times the memory that it needs


def gather(inputs: Sequence[Payload], *, must_copy: bool = False) -> Tensor:
    """Return the items of all parts as one tensor `(items, *shape)` in host memory.

    A single part is not copied unless it must be. `np.concatenate` and
    `torch.cat` cost about the same; stacking or copying row by row costs
    several times as much.

    Args:
        must_copy: The tensor will be written to.
    """
    parts = cast(Sequence[Part], inputs)
    if len(parts) == 1:
        return _one(parts[0], must_copy=must_copy)
    if set(map(type, parts)) == {np.ndarray}:
        return torch.from_numpy(np.concatenate(cast(Sequence[np.ndarray], parts)))
    return torch.cat([_one(part) for part in parts])


def _one(part: Part, *, must_copy: bool = False) -> Tensor:
    if isinstance(part, Tensor):
        return part.clone() if must_copy else part
    if must_copy or not (part.flags.writeable and part.flags.c_contiguous):
        part = part.copy(order="C")  # torch takes no read-only arrays
    return torch.from_numpy(part)


def detach(output: Tensor, x: Tensor, *, arena: tuple[int, int]) -> Tensor:
    """Return the output in memory that is its own.

    A model may return its input, a view of a weight, or a small view of a
    large activation: those are copied, as results outlive all of them.

    Args:
        arena: Addresses of the arena's first byte and of the first behind it.
    """
    storage = output.untyped_storage()
    address = storage.data_ptr()
    is_own = (
        address != x.untyped_storage().data_ptr()
        and not arena[0] <= address < arena[1]
        and storage.nbytes() <= _WASTE * output.nbytes
    )
    return output if is_own else output.clone(memory_format=torch.contiguous_format)


def scatter(output: Tensor, inputs: Sequence[Payload]) -> list[Payload]:
    """Return one piece of the output per part, of the kind of the part.

    The pieces are views of the one output. An output that numpy does not know
    (bfloat16) comes as tensors.
    """
    kinds = set(map(type, inputs))
    if kinds == {np.ndarray} and output.dtype is not torch.bfloat16:
        return cast(list[Payload], _split(output.numpy(), inputs))
    plain = _plain(output)
    is_single = len(inputs) == len(plain)
    tensors = torch.split(plain, 1) if is_single else _split(plain, inputs)
    if np.ndarray not in kinds or output.dtype is torch.bfloat16:
        return cast(list[Payload], list(tensors))
    return [
        cast(Payload, piece.numpy() if isinstance(part, np.ndarray) else piece)
        for piece, part in zip(cast(list[Tensor], tensors), inputs, strict=True)
    ]


def _plain(output: Tensor) -> Tensor:
    """Return a tensor that callers may use outside of inference mode, too.

    The way through numpy costs nothing; what numpy does not know is copied.
    """
    if output.dtype is torch.bfloat16:
        with torch.inference_mode(mode=False):
            return output.clone()
    return torch.from_numpy(output.numpy())


def _split(output: Part, inputs: Sequence[Payload]) -> list[Part]:
    if len(inputs) == 1:
        return [output]
    if len(output) == len(inputs):
        return [output[i : i + 1] for i in range(len(inputs))]
    pieces: list[Part] = []
    start = 0
    for part in inputs:
        end = start + len(part)
        pieces.append(output[start:end])
        start = end
    return pieces
