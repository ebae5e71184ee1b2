"""Dry run: how much memory a forward pass holds at most, without running it."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.profiler import profile
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from engine.spec import Bucket

# The profiler's library reports its own start and stop on stderr unless told not to.
os.environ.setdefault("KINETO_LOG_LEVEL", "99")


class LiveBytes(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no type
    """Sum the storages that live during a forward pass and keep the highest sum.

    Works on the meta device too, where nothing is computed and no memory is
    taken: there the sum grows with the batch exactly as in a real run. What a
    kernel takes and frees inside itself it does not see.
    """

    def __init__(self, known: Sequence[Tensor]) -> None:
        """Start at 0; the storages of `known` tensors (the weights) do not count."""
        super().__init__()  # type: ignore[no-untyped-call]  # see above
        self.live_bytes = 0
        self.peak_bytes = 0
        self._known = [tensor.untyped_storage() for tensor in known]
        self._seen = {id(storage) for storage in self._known}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Leave the compiler out: hiding from it would import it, which takes a second."""
        return False

    def __torch_dispatch__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        """Run one operator and count what it returns."""
        out = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(out):
            if isinstance(leaf, Tensor):
                self.note(leaf)
        return out

    def note(self, tensor: Tensor) -> None:
        """Count a tensor's storage from now until it dies."""
        storage = tensor.untyped_storage()
        key = id(storage)
        if key in self._seen:
            return
        self._seen.add(key)
        size_bytes = storage.nbytes()
        self.live_bytes += size_bytes
        self.peak_bytes = max(self.peak_bytes, self.live_bytes)
        weakref.finalize(storage, self._gone, key, size_bytes).atexit = False

    def _gone(self, key: int, size_bytes: int) -> None:
        self._seen.discard(key)
        self.live_bytes -= size_bytes


def make_input(bucket: Bucket, items: int, *, device: str = "cpu") -> Tensor:
    """Return an input that every model accepts: 0.5 where fractions are meant, else 0."""
    dtype: torch.dtype = getattr(torch, bucket.dtype)
    value = 0.5 if dtype.is_floating_point else 0
    return torch.full((items, *bucket.shape), value, dtype=dtype, device=device)


class Pass(NamedTuple):
    """Say what one forward pass did to memory.

    Attributes:
        peak_bytes: Most bytes that lived at once: input, output and what lies between.
        writes_input: It changed its input, so that callers' arrays must be copied first.
    """

    peak_bytes: int
    writes_input: bool


def watch_pass(module: nn.Module, x: Tensor) -> Pass:
    """Run a forward pass, for real or on the meta device, and say what it did to memory.

    Raises:
        TypeError: The output is not one tensor `(items, ...)`.
    """
    live = LiveBytes([*module.parameters(), *module.buffers()])
    live.note(x)
    version = x._version  # noqa: SLF001  # how torch itself tells that a tensor was written to
    with torch.no_grad(), live:
        check_output(module(x), len(x))
    return Pass(live.peak_bytes, x._version != version)  # noqa: SLF001  # see above


def scratch_bytes(module: nn.Module, x: Tensor) -> int:
    """Run once with the profiler and return the most bytes that were held, input included.

    It sees what kernels take and free inside themselves. Not through
    `torch.profiler`: that one imports a compiler at its first use, which
    costs more than a second.
    """
    with torch.inference_mode(), profile(profile_memory=True, acc_events=True) as profiled:
        module(x)
    assert profiled.kineto_results is not None, "the profile has ended"
    live = peak = x.nbytes
    for event in profiled.kineto_results.events():
        if event.name() == "[memory]":
            live += event.nbytes()
            peak = max(peak, live)
    return peak


def check_output(output: object, items: int) -> Tensor:
    """Return the output of a forward pass if it is one tensor with a row per item.

    Raises:
        TypeError: It is not.
    """
    if not isinstance(output, Tensor):
        raise TypeError(f"forward returned {type(output).__name__}, wanted one tensor")
    if output.dim() == 0 or len(output) != items:
        raise TypeError(
            f"forward returned a tensor {tuple(output.shape)}, wanted ({items}, ...): "
            "one row per item"
        )
    return output
