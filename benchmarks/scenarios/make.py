"""Write the benchmark scenarios: many tuned tenants of a few published networks on small cards.

Latency rows are hinges max(floor, fixed + per_item * n) through published tables; weights are
parameter bytes at the stated precision; workspaces are assumed, of the order of measured
activation peaks. Usage:

    python -m benchmarks.scenarios.make NAME > NAME.json     (NAME: a key of PRESETS)
    python -m benchmarks.scenarios.make --all DIR
"""

from __future__ import annotations

import json
import random
import sys
from dataclasses import dataclass
from pathlib import Path

from engine.units import MIB

COMMITTED = ("one-card", "eight-cards", "eight-cards-tight")


@dataclass(frozen=True, slots=True)
class Architecture:
    """Describe a published network on one card family, and the tenants that use it.

    Attributes:
        workspace_bytes: Of a batch: fixed, then per item.
        latency_ms: The hinge: floor, fixed, per item.
        share: Of all tenants.
        source: Where its latency was published.
    """

    name: str
    weight_bytes: int
    workspace_bytes: tuple[int, int]
    latency_ms: tuple[float, float, float]
    share: float
    priority: int
    slo_ms: int
    source: str


@dataclass(frozen=True, slots=True)
class Preset:
    """Fix the size of a scenario: its rate, burstiness and popularity's exponent."""

    cards: int
    tenants: int
    rate_hz: int
    cv: int
    zipf: float
    duration_s: int


_V100 = "DeepLearningExamples"
ARCHITECTURES = (  # one card family: V100-16G
    Architecture(
        "resnet50-amp", 51_000_000, (64 * MIB, 6 * MIB), (13.37, 5.80, 0.295),
        0.35, 1, 150, f"{_V100} RN50 eager AMP, V100",
    ),
    Architecture(
        "resnet50-fp32", 102_000_000, (64 * MIB, 10 * MIB), (10.64, 2.84, 0.827),
        0.15, 2, 200, f"{_V100} RN50 eager FP32, V100",
    ),
    Architecture(
        "bert-base-s128-fp16", 219_000_000, (48 * MIB, 6 * MIB), (0, 4.45, 0.501),
        0.20, 0, 100, f"{_V100} BERT-base s128, V100",
    ),
    Architecture(
        "bert-base-s384-fp16", 219_000_000, (96 * MIB, 24 * MIB), (0, 4.26, 1.882),
        0.15, 3, 300, f"{_V100} BERT-base s384, V100",
    ),
    Architecture(
        "bert-large-s128-fp16", 670_000_000, (96 * MIB, 16 * MIB), (0, 8.74, 1.530),
        0.15, 5, 500, f"{_V100} BERT-large s128, V100",
    ),
)  # fmt: skip
PRESETS = {
    "one-card": Preset(1, 100, 150, 2, 0.9, 120),
    "eight-cards": Preset(8, 400, 1600, 4, 0.9, 120),
    "eight-cards-tight": Preset(8, 900, 1200, 4, 0.9, 120),
    "hundred-cards": Preset(100, 5000, 20_000, 4, 0.9, 20),
    "thousand-cards": Preset(1000, 50_000, 200_000, 4, 0.9, 4),
}


def scenario(name: str, seed: int = 7) -> dict[str, object]:
    """Return a preset as the document that `millpond simulate` reads."""
    preset = PRESETS[name]
    models = [
        _model(network, index)
        for network in ARCHITECTURES
        for index in range(round(preset.tenants * network.share))
    ]
    random.Random(seed).shuffle(models)  # popularity follows this order: the first is rank 1
    return {
        "name": name,
        "seed": seed,
        "duration_s": preset.duration_s,
        "warmup_s": min(20, preset.duration_s / 4),
        "devices": [_card(index) for index in range(preset.cards)],
        "models": models,
        "load": {
            "kind": "gamma",
            "rate_hz": preset.rate_hz,
            "cv": preset.cv,
            "popularity": {"kind": "zipf", "s": preset.zipf},
        },
    }


def _card(index: int) -> dict[str, object]:
    return {
        "name": f"gpu{index}",
        "kind": "simulated",
        "capacity_bytes": 16_000_000_000,
        "reserve_bytes": 1_500_000_000,
        "load_bytes_per_s": 12.3e9,
        "move_bytes_per_s": 120e9,
    }


def _model(network: Architecture, index: int) -> dict[str, object]:
    fixed_bytes, item_bytes = network.workspace_bytes
    floor, fixed, per_item = network.latency_ms
    return {
        "name": f"{network.name}-{index:05d}",
        "source": network.source,
        "weight_bytes": network.weight_bytes,
        "workspace_bytes": {"fixed": fixed_bytes, "per_item": item_bytes},
        "latency_ms": {"floor": floor, "fixed": fixed, "per_item": per_item, "sigma": 0.02},
        "priority": network.priority,
        "slo_ms": network.slo_ms,
        "watermarks": {"low": 4, "high": 16, "timeout_ms": 50},
    }


if __name__ == "__main__":
    if sys.argv[1] == "--all":
        for chosen in COMMITTED:
            Path(sys.argv[2], f"{chosen}.json").write_text(
                json.dumps(scenario(chosen), indent=1)
            )
    else:
        json.dump(scenario(sys.argv[1]), sys.stdout, indent=1)
