"""Swap: loading a model from the host, against a plain copy of as many bytes."""

from __future__ import annotations

import mmap
import statistics
import time
from collections.abc import Callable

import torch
from torch import nn

from benchmarks.measure import arguments, report
from engine.devices.cpu import CpuDevice
from engine.devices.process import tune_interpreter, tune_memory
from engine.devices.weights import Images
from engine.effects import EvictWeights, LoadWeights, MoveWeights
from engine.spec import Bucket, DeviceSpec, ModelSpec, Sample
from engine.units import GIB, MIB

OFFSET = 2 * MIB
WIDTHS = {"ranker_size": 2048, "large": 4096}


def spec(name: str, width: int) -> ModelSpec:
    """Describe three linear layers of that width."""

    def build() -> nn.Module:
        torch.manual_seed(0)
        return nn.Sequential(*(nn.Linear(width, width) for _ in range(3)))

    return ModelSpec(name, build, (Bucket((width,)),), lambda _: Sample(torch.zeros(1, width)))


def took_s(call: Callable[[], object]) -> float:
    """Return how long a call took."""
    start = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - start) / 1e9


class Copy:
    """Copy a block by hand into a range of memory that is in one of two states."""

    def __init__(self, block: torch.Tensor) -> None:
        """Map the target as an arena is mapped."""
        self._block = block
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self._map = mmap.mmap(-1, OFFSET + block.nbytes, flags=flags)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            self._map.madvise(mmap.MADV_HUGEPAGE)
        self._target = torch.frombuffer(self._map, dtype=torch.uint8)[OFFSET:]

    def warm(self) -> float:
        """Return the time of a copy into pages that are there."""
        self._target.copy_(self._block)
        return took_s(lambda: self._target.copy_(self._block))

    def fresh(self) -> float:
        """Return the time of a copy into pages that the system still has to clear."""
        self._map.madvise(mmap.MADV_DONTNEED)
        return took_s(lambda: self._target.copy_(self._block))


def measure(name: str, width: int, *, rounds: int) -> dict[str, float]:
    """Load, move and evict a model in turn with plain copies of its bytes."""
    images = Images()
    image = images.add(spec(name, width), ["cpu"])
    size = image.size_bytes
    device = CpuDevice(DeviceSpec("cpu:0", "cpu", GIB, 0, False, 4e9, 8e9), images)
    copy = Copy(images.block(name))
    found: dict[str, list[float]] = {"load": [], "fresh": [], "warm": [], "move": []}
    for _ in range(rounds):
        found["fresh"].append(copy.fresh())
        load = LoadWeights(1, "cpu:0", name, "fp32", OFFSET, size)
        found["load"].append(took_s(lambda load=load: device.load(load)))
        move = MoveWeights(2, "cpu:0", name, OFFSET, OFFSET + size // 2 // 512 * 512, size)
        found["move"].append(took_s(lambda move=move: device.move(move)))
        device.evict(EvictWeights(3, "cpu:0", name, move.new_offset, size))
        found["warm"].append(copy.warm())
    device.close()
    pairs = zip(found["warm"], found["load"], strict=True)
    fresh = zip(found["fresh"], found["load"], strict=True)
    speeds = {f"{key}_gb_s": size / statistics.median(found[key]) / 1e9 for key in found}
    return {
        "megabytes": size / 1e6,
        **{key: round(value, 2) for key, value in speeds.items()},
        "load_fraction_of_copy": round(statistics.median(c / t for c, t in pairs), 3),
        "load_fraction_of_fresh_copy": round(statistics.median(c / t for c, t in fresh), 3),
    }


def main() -> None:
    """Measure both sizes and print what a load reaches of a plain copy."""
    options = arguments(__doc__ or "", rounds=15, seconds=0.0)
    tune_memory()
    tune_interpreter()
    torch.set_num_threads(1)
    sizes = {
        name: measure(name, width, rounds=options.rounds) for name, width in WIDTHS.items()
    }
    fractions = [row["load_fraction_of_copy"] for row in sizes.values()]
    report({"load_fraction_of_copy": min(fractions), "models": sizes}, options.json)


if __name__ == "__main__":
    main()
