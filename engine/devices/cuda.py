"""CUDA: weights in one arena of a card, batches on one stream with a memory pool of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from contextlib import AbstractContextManager

import torch
from torch import Tensor

from engine.devices.dry_run import check_output
from engine.devices.gather import gather, scatter
from engine.devices.holder import FULL, Holder, known_precision
from engine.devices.nvml import Nvml
from engine.devices.staging import PinnedRing, make_event, make_stream
from engine.devices.transfers import BOUNCE_BYTES, cut_move, cut_seed
from engine.devices.weights import Images
from engine.effects import ConvertWeights, EvictWeights, LoadWeights, MoveWeights, RunBatch
from engine.errors import DeviceError, EngineError, Failed, InputError, OutOfMemoryError
from engine.ports import Payload, Telemetry
from engine.reserve import LARGE_LIBRARY_BYTES, SMALL_LIBRARY_BYTES, cuda_parts, size_of
from engine.spec import DeviceSpec
from engine.units import MIB, format_bytes

_WORKSPACE_SHARE = 4  # a quarter of the pool is set aside for leases
_LOAD_BYTES_PER_S = 12e9  # PCIe 3 x16 from pinned memory; newer links are faster
_HOPPER = 9  # compute capability from which cuBLAS takes the larger workspace
_MOVE_BYTES_PER_S = 120e9  # a copy inside the slowest of the known cards

_POOL_FUNCTION = "_cuda_beginAllocateCurrentThreadToPool"
_HAS_THREAD_POOLS = hasattr(torch._C, _POOL_FUNCTION)  # noqa: SLF001  # there is no other sign
"""Before torch 2.8 a pool took the allocations of all threads; leases are only counted then."""


def describe_cuda(index: int) -> DeviceSpec:
    """Describe a card of this machine; what others hold of it now is not counted in.

    Raises:
        DeviceError: It does not answer.
    """
    try:
        card = torch.cuda.get_device_properties(index)
    except RuntimeError as error:
        raise DeviceError(f"cuda:{index}: does not answer: {error}") from error
    nvml = Nvml(_uuid(index))
    capacity = card.total_memory - nvml.used_bytes()
    nvml.close()
    capacity -= capacity % (2 * MIB)
    is_large = card.major >= _HOPPER
    library = LARGE_LIBRARY_BYTES if is_large else SMALL_LIBRARY_BYTES
    parts = cuda_parts(card.total_memory, library_bytes=library)
    reserve = size_of(parts)
    if capacity <= 2 * reserve:
        raise DeviceError(
            f"cuda:{index}: only {format_bytes(capacity)} are free, wanted more than "
            f"{format_bytes(2 * reserve)}; end what else runs on it"
        )
    workspace = (capacity - reserve) // _WORKSPACE_SHARE
    return DeviceSpec(
        f"cuda:{index}",
        "cuda",
        capacity,
        reserve,
        addressed=False,
        load_bytes_per_s=_LOAD_BYTES_PER_S,
        move_bytes_per_s=_MOVE_BYTES_PER_S,
        workspace_bytes=workspace - workspace % (2 * MIB),
        source=f"{card.name}; bandwidths assumed until measured",
        reserve_parts=parts,
    )


def _uuid(index: int) -> str:
    return f"GPU-{torch.cuda.get_device_properties(index).uuid}"


class CudaDevice:
    """Hold weights in an arena of the card and run batches on one stream.

    Three traps that it stays clear of: the memory pool has no Python
    callbacks (they deadlock with the allocator's lock), cuBLAS is warmed
    outside the pool (its workspace would never leave it), and nobody polls
    the allocator's snapshots (they corrupt reference counts).
    """

    def __init__(self, spec: DeviceSpec, images: Images) -> None:
        """Take the arena from the card.

        Raises:
            OutOfMemoryError: The card has not as much free.
            DeviceError: It does not answer.
        """
        self._spec = spec
        self._images = images
        self._device = torch.device(spec.name)
        self._ready: dict[str, torch.cuda.Event] = {}
        self._pool: torch.cuda.MemPool | None = None
        try:
            size_bytes = spec.pool_bytes - (spec.workspace_bytes or 0)
            self._arena = torch.empty(size_bytes, dtype=torch.uint8, device=self._device)
            self._holder = Holder(images, self._arena, device=spec.name)
            self._compute = make_stream(self._device)
            self._copies = make_stream(self._device)
            self._last_use = make_event()
            self._ring = PinnedRing()
            self._nvml = Nvml(_uuid(self._device.index))
        except RuntimeError as error:
            raise _translate(spec.name, error) from error

    def __repr__(self) -> str:
        """Show what lies in the arena."""
        return f"CudaDevice({self._spec.name}, {self._holder.names()})"

    @property
    def spec(self) -> DeviceSpec:
        """Return the description that the core knows."""
        return self._spec

    def start_worker(self) -> None:
        """Give the calling thread its stream, warm the libraries, then seed its pool."""
        torch.cuda.set_device(self._device)
        torch.cuda.set_stream(self._compute)
        with torch.inference_mode():
            image = torch.ones(1, 1, 64, 64, device=self._device)
            torch.nn.functional.conv2d(image @ image, image[..., :3, :3])
        self._compute.synchronize()
        if _HAS_THREAD_POOLS:
            self._pool = torch.cuda.MemPool()
            self._seed(self._spec.workspace_bytes or 0)

    def load(self, effect: LoadWeights) -> None:
        """Copy a model's weights through pinned memory, beside whatever the card computes."""
        model, offset = effect.model, effect.offset
        assert model not in self._holder, "a model is loaded once"
        if effect.precision != FULL:
            raise InputError(
                f"precision: found {effect.precision}, weights are loaded at {FULL}"
            )
        block = self._images.block(model)
        assert offset + block.nbytes <= self._arena.nbytes, "weights fit the arena"
        try:
            # The range may have been another model's: its last batch or move must be over.
            self._copies.wait_event(self._last_use)
            target = self._arena[offset : offset + block.nbytes]
            self._ring.copy(block, target, stream=self._copies)
            ready = make_event()
            ready.record(self._copies)
            ready.synchronize()
            self._holder.settle(model, FULL, offset=offset)
        except RuntimeError as error:
            raise _translate(f"{self._spec.name}: load of {model}", error) from error
        self._ready[model] = ready

    def evict(self, effect: EvictWeights) -> None:
        """Forget a model's weights; the host's copy stays, so nothing is copied back."""
        place = self._holder.forget(effect.model)
        assert place.offset == effect.offset, "the core knows where a model lies"
        del self._ready[effect.model]

    def move(self, effect: MoveWeights) -> None:
        """Move a model's weights inside the arena, on the stream that also runs batches."""
        place = self._holder.place(effect.model)
        assert place.offset == effect.offset, "the core knows where a model lies"
        try:
            self._compute.wait_event(self._ready[effect.model])
            self._shift(place.offset, effect.new_offset, size_bytes=place.size_bytes)
            self._last_use.record(self._compute)
            self._compute.synchronize()
        except RuntimeError as error:
            raise _translate(f"{self._spec.name}: move of {effect.model}", error) from error
        self._holder.settle(effect.model, place.precision, offset=effect.new_offset)

    def convert(self, effect: ConvertWeights) -> None:
        """Write a model's weights anew from the host copy, at another precision.

        On the stream of the batches, so that none reads half of them. Where
        that fails they are as they were.
        """
        holder, model = self._holder, effect.model
        precision, place = known_precision(effect.precision), holder.place(model)
        assert place.offset == effect.offset, "the core knows where a model lies"
        try:
            self._compute.wait_event(self._ready[model])
            holder.rewrite(model, precision, offset=effect.new_offset)
            self._last_use.record(self._compute)
            self._compute.synchronize()
        except RuntimeError as error:
            raise _translate(f"{self._spec.name}: conversion of {model}", error) from error

    def run(self, batch: RunBatch, inputs: Sequence[Payload]) -> Sequence[Payload]:
        """Run one batch; see `Device.run`. Out of memory is tried once more, with all let go.

        Raises:
            Failed: The model raised an error, or returned something else than a row per item.
            OutOfMemoryError: The lease was too small, twice.
            DeviceError: The card is lost.
        """
        model = batch.lane.model
        try:
            output = self._try_forward(model, inputs)
            if output is None:
                self._compute.synchronize()
                output = self._forward(model, inputs)
            return scatter(output, inputs)
        except Exception as error:
            raise _translate(model, error) from error

    def peak_bytes(self) -> int:
        """Measure nothing."""
        return 0

    def telemetry(self) -> Telemetry | None:
        """Return what NVML says of the card."""
        return self._nvml.telemetry()

    def truth_bytes(self) -> int:
        """Return what the driver says is used of the card, by this process and others."""
        return self._nvml.used_bytes()

    def close(self) -> None:
        """Give everything back: first the pool, then the arena."""
        self._holder.close()
        self._ready.clear()
        self._pool = None
        self._arena = torch.empty(0, dtype=torch.uint8)
        self._ring = PinnedRing(0)
        torch.cuda.empty_cache()
        self._nvml.close()

    def _try_forward(self, model: str, inputs: Sequence[Payload]) -> Tensor | None:
        """Return None when out of memory, and with the error all that it kept alive is gone."""
        try:
            return self._forward(model, inputs)
        except torch.OutOfMemoryError:
            return None

    def _forward(self, model: str, inputs: Sequence[Payload]) -> Tensor:
        """Return the output in host memory; everything else of the batch is let go."""
        with torch.inference_mode(), self._leased():
            x = gather(inputs).to(self._device)
            self._compute.wait_event(self._ready[model])
            try:
                return check_output(self._holder.module(model)(x), len(x)).cpu()
            finally:
                # Of a failed batch too: its kernels may still read the weights.
                self._last_use.record(self._compute)

    def _leased(self) -> AbstractContextManager[None]:
        """Let the calling thread's allocations come from the worker's pool."""
        if self._pool is None:
            return contextlib.nullcontext()
        return torch.cuda.use_mem_pool(self._pool, self._device)

    def _seed(self, lease_bytes: int) -> None:
        """Take the lease once, so that no batch has to ask the driver for memory."""
        large, small = cut_seed(lease_bytes)
        sizes = [size for size in (large, *[MIB] * small) if size]
        try:
            with self._leased():
                blocks = [
                    torch.empty(size, dtype=torch.uint8, device=self._device) for size in sizes
                ]
                del blocks
        except torch.OutOfMemoryError:
            return  # batches will take what they need and report what they do not get

    def _shift(self, offset: int, new_offset: int, *, size_bytes: int) -> None:
        arena = self._arena
        with self._leased():
            scratch = torch.empty(BOUNCE_BYTES, dtype=torch.uint8, device=self._device)
            for piece in cut_move(offset, new_offset, size_bytes=size_bytes):
                length = piece.size_bytes
                source = arena[piece.source : piece.source + length]
                if piece.through_scratch:
                    source = scratch[:length].copy_(source)
                arena[piece.target : piece.target + length].copy_(source)


def _translate(subject: str, error: Exception) -> EngineError:
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, torch.OutOfMemoryError | MemoryError) or "ALLOC_FAILED" in said:
        return OutOfMemoryError(f"{subject}: {said}")
    if isinstance(error, torch.AcceleratorError) or "CUDA error" in said:
        return DeviceError(f"{subject}: the device is lost until a restart: {said}")
    return Failed(f"{subject}: {said}")
