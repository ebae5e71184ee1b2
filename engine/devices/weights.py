"""Weights: every model of the process, packed once in host memory, with its profiles."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from torch import Tensor, nn

from engine.devices.catalog import published
from engine.devices.cuda_probe import probe_cuda
from engine.devices.host_tier import HostChange, HostTier
from engine.devices.lower import Lower, Source, make_lower
from engine.devices.packing import Layout, Weights, make_skeleton, pack
from engine.devices.probe import Cost, Line, measure, plan
from engine.errors import InputError, StoreError
from engine.profile import Profile, ProfileKey
from engine.rules import Precision
from engine.spec import ModelSpec

_LOG = logging.getLogger("millpond.device")
_BORROWED = "the CPU figures of this machine, for want of better ones"


@dataclass(frozen=True, slots=True)
class Image:
    """Hold one model but for its weights, which the host tier keeps: its module without memory.

    Attributes:
        kernels: Workspace that the CPU's kernels take inside themselves, by item shape.
        writes_input: Its forward pass changes its input, which must then be a copy.
    """

    spec: ModelSpec
    layout: Layout
    skeleton: nn.Module
    profiles: tuple[Profile, ...]
    build_ns: int
    writes_input: bool
    kernels: Mapping[tuple[int, ...], Line] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        """Return the size of the packed weights."""
        return self.layout.size_bytes

    def source(self, block: Tensor) -> Source:
        """Return what a lower precision is made from.

        Args:
            block: uint8 (size_bytes,): its packed weights.
        """
        return Source(self.spec, block, self.layout, self.skeleton, self.profiles)

    def kernel_bytes(self, shape: tuple[int, ...], items: int) -> int:
        """Return what the CPU's kernels take inside themselves for a batch."""
        line = self.kernels.get(shape)
        return 0 if line is None else line.fixed + line.item * items

    def __repr__(self) -> str:
        """Show the name and the size."""
        return f"Image({self.spec.name}, {self.size_bytes} bytes)"


class Images:
    """Keep the images of all models of the process; devices load from here."""

    def __init__(self, folder: Path | None = None) -> None:
        """Start empty.

        Args:
            folder: Where weights beyond the host's budget may lie as files.
        """
        self._tier = HostTier(folder)
        self._images: dict[str, Image] = {}
        self._lowers: dict[tuple[int, Precision], Lower] = {}

    def __getitem__(self, model: str) -> Image:
        """Return the image of a model that was added."""
        return self._images[model]

    def lower(self, model: str, precision: Precision) -> Lower:
        """Return a model at a lower precision; found out once.

        Raises:
            InputError: It cannot be run from reduced weights.
        """
        image = self._images[model]
        key = (id(image.layout), precision)
        lower = self._lowers.get(key)
        if lower is None:
            lower = self._lowers[key] = make_lower(image.source(self.block(model)), precision)
        return lower

    def block(self, model: str) -> Tensor:
        """Return a model's packed weights, uint8 (size_bytes,), to be read only.

        Where their file was lost or damaged they are built again.

        Raises:
            InputError: They cannot be built any more.
        """
        try:
            return self._tier.block(model)
        except StoreError as error:
            _LOG.warning("%s", error)
            layout, block = pack(_build(self._images[model].spec))
            if layout.size_bytes != self._images[model].size_bytes:
                raise InputError(
                    f"{model}: build returned other weights than at first"
                ) from error
            self._tier.put(model, block)
            return self._tier.block(model)

    def set_host_budget(self, budget_bytes: int | None) -> Sequence[HostChange]:
        """Change how many bytes of weights stay in host memory; None: all. Blocks.

        Returns:
            What went to files or came back, since the last call.
        """
        self._tier.set_budget(budget_bytes)
        return self._tier.changes()

    def close(self) -> None:
        """Forget all weights and remove their files."""
        self._tier.close()

    def add(self, spec: ModelSpec, kinds: Sequence[str]) -> Image:
        """Build, pack and probe a model for these kinds of device.

        A model that is there already, from the same description and for these
        kinds, is not built again: several engines may share the images.

        Raises:
            InputError: It cannot be built or run; says why and what to do.
        """
        image = self._images.get(spec.name)
        if image is None or image.spec is not spec or not _has(image, kinds):
            image, block = _make(spec, kinds)
            self._images[spec.name] = image
            self._tier.put(spec.name, block)
        return image


def _has(image: Image, kinds: Sequence[str]) -> bool:
    return set(kinds) <= {profile.key.device_kind for profile in image.profiles}


def _make(spec: ModelSpec, kinds: Sequence[str]) -> tuple[Image, Tensor]:
    start_ns = time.perf_counter_ns()
    module = _build(spec)
    try:
        layout, block = pack(module)
        skeleton = make_skeleton(module, layout)
        weights = Weights(skeleton, layout)
    except Exception as error:
        raise InputError(
            f"{spec.name}: its weights cannot be packed: {_said(error)}; wanted a plain module "
            "with dense parameters and buffers on the CPU"
        ) from error
    build_ns = time.perf_counter_ns() - start_ns
    weights.point(block, 0)
    try:
        plans = plan(weights.module, skeleton, buckets=spec.buckets)
        on_card = None
        if "cuda" in kinds:
            on_card = probe_cuda(skeleton, (layout, block), buckets=spec.buckets)
        # The CPU's figures stand in wherever there are no better ones.
        is_enough = on_card is not None and set(kinds) == {"cuda"}
        on_cpu = () if is_enough else measure(weights.module, plans)
    except Exception as error:
        shapes = ", ".join(str(bucket.shape) for bucket in spec.buckets)
        raise InputError(
            f"{spec.name}: a first run on zeros of its shapes {shapes} failed: {_said(error)}; "
            "correct its buckets or its forward"
        ) from error
    profiles = tuple(
        profile
        for kind in kinds
        for profile in _profiles(
            spec, kind, weight_bytes=layout.size_bytes, costs=(on_cpu, on_card)
        )
    )
    writes_input = any(own.writes_input for own in plans)
    kernels = {cost.bucket.shape: cost.kernels for cost in on_cpu}
    image = Image(spec, layout, skeleton, profiles, build_ns, writes_input, kernels)
    return image, block


def _build(spec: ModelSpec) -> nn.Module:
    if spec.missing:
        raise InputError(f"{spec.name}: {spec.missing}")
    try:
        module = spec.build()
    except Exception as error:
        raise InputError(f"{spec.name}: cannot be built: {_said(error)}") from error
    if not isinstance(module, nn.Module):
        raise InputError(
            f"{spec.name}: build returned {type(module).__name__}, wanted a torch.nn.Module"
        )
    with contextlib.suppress(NotImplementedError):  # an exported program is as it was exported
        module.eval()
    return module


def _profiles(
    spec: ModelSpec,
    kind: str,
    *,
    weight_bytes: int,
    costs: tuple[Sequence[Cost], Sequence[Cost] | None],
) -> list[Profile]:
    """Return one profile per item shape; a published one stands for all shapes.

    Args:
        costs: Found on the CPU; found on a card, if it was probed.
    """
    if kind == "simulated" and (known := published(spec.name)) is not None:
        return [known]
    on_cpu, on_card = costs
    is_own = kind == "cpu" or (kind == "cuda" and on_card is not None)
    found: list[Profile] = []
    for cost in on_card if kind == "cuda" and on_card is not None else on_cpu:
        key = ProfileKey(spec.name, kind, shape=cost.bucket.shape)
        profile = cost.profile(key, weight_bytes)
        if not is_own:
            profile = replace(profile, source=f"{_BORROWED}; {profile.source}")
        found.append(profile)
    return found


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
