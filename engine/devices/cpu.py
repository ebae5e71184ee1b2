"""CPU: weights in one arena of this process, batches on one core."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from engine.devices.dry_run import check_output
from engine.devices.gather import detach, gather, scatter
from engine.devices.holder import FULL, Holder, known_precision
from engine.devices.peaks import Peaks
from engine.devices.weights import Images
from engine.effects import ConvertWeights, EvictWeights, LoadWeights, MoveWeights, RunBatch
from engine.errors import EngineError, Failed, OutOfMemoryError
from engine.ports import Payload
from engine.spec import DeviceSpec
from engine.units import MIB, align_up, format_bytes

_GIVE_BACK = getattr(mmap, "MADV_FREE", mmap.MADV_DONTNEED)
"""Free: the system takes such pages when it needs them; a load before that finds them there."""
_STEP_BYTES = 4 * MIB  # madvise keeps the interpreter's lock; so long no other thread runs


class CpuDevice:
    """Hold weights in an arena and run batches with one thread.

    The arena is mapped from the system, not taken from malloc: its pages come
    with the first load and go back with an eviction. Activations live in
    malloc, so that leases are a budget.
    """

    def __init__(self, spec: DeviceSpec, images: Images) -> None:
        """Map the arena; it takes no memory yet.

        Raises:
            OutOfMemoryError: The system has no such range of addresses.
        """
        assert not spec.addressed, "activations of a CPU device have no address"
        self._spec = spec
        self._images = images
        self._map = _map(spec)
        self._arena = torch.frombuffer(self._map, dtype=torch.uint8)
        self._start = self._arena.data_ptr()
        self._span = (self._start, self._start + self._arena.nbytes)
        self._holder = Holder(images, self._arena)
        self._input_bytes = 0
        self._peaks = Peaks()

    def __repr__(self) -> str:
        """Show the arena and what lies in it."""
        used = format_bytes(self.truth_bytes())
        return f"CpuDevice({self._spec.name}, {used} used, {self._holder.names()})"

    @property
    def spec(self) -> DeviceSpec:
        """Return the description that the core knows."""
        return self._spec

    def start_worker(self) -> None:
        """Let the calling thread use one core for an operator."""
        torch.set_num_threads(1)

    def load(self, effect: LoadWeights) -> None:
        """Copy a model's packed weights into the arena and point its module there."""
        assert effect.model not in self._holder, "a model is loaded once"
        precision = known_precision(effect.precision)
        self._holder.write(effect.model, precision, offset=effect.offset)
        self._holder.settle(effect.model, precision, offset=effect.offset)

    def evict(self, effect: EvictWeights) -> None:
        """Forget a model's weights and offer their pages to the system."""
        place = self._holder.forget(effect.model)
        assert place.offset == effect.offset, "the core knows where a model lies"
        self._give_back(place.offset, place.offset + place.size_bytes)

    def move(self, effect: MoveWeights) -> None:
        """Move a model's weights; old and new place may overlap."""
        place = self._holder.place(effect.model)
        offset, size_bytes, new = place.offset, place.size_bytes, effect.new_offset
        assert offset == effect.offset, "the core knows where a model lies"
        ctypes.memmove(self._start + new, self._start + offset, size_bytes)
        self._holder.settle(effect.model, place.precision, offset=new)
        if new < offset:
            self._give_back(max(offset, new + size_bytes), offset + size_bytes)
        else:
            self._give_back(offset, min(new, offset + size_bytes))

    def convert(self, effect: ConvertWeights) -> None:
        """Write a model's weights anew from the host copy, at another precision.

        Where that fails they are as they were.
        """
        holder, model = self._holder, effect.model
        precision, place = known_precision(effect.precision), holder.place(model)
        assert place.offset == effect.offset, "the core knows where a model lies"
        holder.rewrite(model, precision, offset=effect.new_offset)
        start, end = place.offset, place.offset + place.size_bytes
        if effect.new_offset == effect.offset:
            start += holder.place(model).size_bytes
        self._give_back(start, end)

    def run(self, batch: RunBatch, inputs: Sequence[Payload]) -> Sequence[Payload]:
        """Run one batch; see `Device.run`.

        Raises:
            Failed: The model raised an error, or returned something else than a row per item.
            OutOfMemoryError: The system had no memory for its activations.
        """
        model = batch.lane.model
        module = self._holder.module(model)
        try:
            x = gather(inputs, must_copy=self._images[model].writes_input)
            self._input_bytes = x.nbytes
            with torch.inference_mode():
                output = check_output(self._forward(batch, module, x=x), len(x))
                output = detach(output, x, arena=self._span)
            return scatter(output, inputs)
        except Exception as error:
            raise _translate(model, error) from error
        finally:
            self._input_bytes = 0

    def _forward(self, batch: RunBatch, module: nn.Module, *, x: Tensor) -> Tensor:
        if self._holder.place(batch.lane.model).precision != FULL:
            self._peaks.last_bytes = 0  # the plan that is corrected is that of full precision
            return cast(Tensor, module(x))
        watch = self._peaks.watch(batch.lane, batch.items, known=[self._arena])
        if watch is None:
            return cast(Tensor, module(x))
        watch.note(x)
        with watch:
            output = cast(Tensor, module(x))
        kernels = self._images[batch.lane.model].kernel_bytes(batch.lane.shape, batch.items)
        self._peaks.last_bytes = watch.peak_bytes + kernels
        return output

    def peak_bytes(self) -> int:
        """Return the measured workspace of the batch that ran last; 0: not measured."""
        return self._peaks.last_bytes

    def telemetry(self) -> None:
        """Return nothing: there is no card."""

    def truth_bytes(self) -> int:
        """Return the bytes of the weights in the arena and of the running batch's input."""
        return self._holder.held_bytes() + self._input_bytes

    def close(self) -> None:
        """Give the arena back."""
        self._holder.close()
        self._give_back(0, self._arena.nbytes)
        self._arena = torch.empty(0, dtype=torch.uint8)

    def _give_back(self, start: int, end: int) -> None:
        """Offer the whole pages of a range to the system, in steps."""
        start = align_up(start, mmap.PAGESIZE)
        end -= end % mmap.PAGESIZE
        for step in range(start, end, _STEP_BYTES):
            self._map.madvise(_GIVE_BACK, step, min(_STEP_BYTES, end - step))


def _map(spec: DeviceSpec) -> mmap.mmap:
    size_bytes = spec.pool_bytes - (spec.workspace_bytes or 0)
    try:
        arena = mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, ValueError, OverflowError) as error:
        raise OutOfMemoryError(
            f"{spec.name}: no arena of {format_bytes(size_bytes)} ({error}); make it smaller",
            wanted_bytes=size_bytes,
        ) from error
    if hasattr(mmap, "MADV_HUGEPAGE"):
        arena.madvise(mmap.MADV_HUGEPAGE)  # weights are read from end to end: fewer misses
    return arena


def _translate(model: str, error: Exception) -> EngineError:
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, MemoryError) or "not enough memory" in str(error):
        return OutOfMemoryError(f"{model}: no memory for its activations: {said}")
    return Failed(f"{model}: {said}")
