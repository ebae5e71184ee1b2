"""Catalog: figures of cards and models that others have published, each with its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.errors import InputError
from engine.profile import Latency, Profile, ProfileKey
from engine.spec import DeviceSpec
from engine.units import MIB, ms_to_ns

_SIGMA = (
    0.02  # relative spread of single batches; Nexus found 0.001 to 0.01, DLE p99 up to 1.1x
)


@dataclass(frozen=True, slots=True)
class Card:
    """Give the figures of a card that a simulated device needs.

    Attributes:
        reserve_bytes: Context and libraries; the rest is the pool.
        load_bytes_per_s: From pinned host memory.
        move_bytes_per_s: Copies inside the card: each byte is read and written.
    """

    capacity_bytes: int
    reserve_bytes: int
    load_bytes_per_s: float
    move_bytes_per_s: float
    source: str


def _card(capacity_gb: int, load_gb_s: float, *, move_gb_s: float, source: str) -> Card:
    capacity = capacity_gb * 10**9
    reserve = max(1_500_000_000, capacity * 6 // 100)
    return Card(capacity, reserve, load_gb_s * 1e9, move_gb_s * 1e9, source)


CARDS: Mapping[str, Card] = {
    "V100-16G": _card(
        16, 12.3, move_gb_s=350, source="PCIe 3: Clockwork, 102 MB in 8.3 ms; HBM2 copy, rule"
    ),
    "T4-16G": _card(
        16, 12.0, move_gb_s=120, source="PCIe 3 x16 pinned, rule; GDDR6 copy, 0.4 of its peak"
    ),
    "A100-40G": _card(
        40, 24.0, move_gb_s=620, source="PCIe 4 x16 pinned, rule; HBM2e copy, 0.4 of its peak"
    ),
    "A100-80G": _card(
        80, 24.0, move_gb_s=800, source="PCIe 4 x16 pinned, rule; HBM2e copy, 0.4 of its peak"
    ),
    "H100-80G": _card(
        80, 50.0, move_gb_s=1300, source="PCIe 5 x16 pinned, rule; HBM3 copy, 0.4 of its peak"
    ),
}
"""Bandwidths marked "rule" are rules of thumb, to be replaced by measured ones."""


def make_simulated(name: str, card_name: str) -> DeviceSpec:
    """Return the description of a simulated card.

    Raises:
        InputError: No such card is known; names those that are.
    """
    card = CARDS.get(card_name)
    if card is None:
        raise InputError(f"{card_name}: no such card; there are {', '.join(CARDS)}")
    return DeviceSpec(
        name,
        "simulated",
        card.capacity_bytes,
        card.reserve_bytes,
        addressed=True,
        load_bytes_per_s=card.load_bytes_per_s,
        move_bytes_per_s=card.move_bytes_per_s,
        source=f"simulated {card_name}: {card.source}",
    )


@dataclass(frozen=True, slots=True)
class _Row:
    """Hold a published model: bytes, MiB (fixed, per item), ms (floor, fixed, per item)."""

    weight_bytes: int
    workspace_mib: tuple[int, int]
    latency_ms: tuple[float, float, float]
    source: str


_ROWS: Mapping[str, _Row] = {
    "resnet50-amp": _Row(
        51_000_000,
        (64, 6),
        (13.37, 5.80, 0.295),
        "NVIDIA DeepLearningExamples, ResNet-50 eager PyTorch AMP, V100-16G, NGC 21.03",
    ),
    "resnet50-fp32": _Row(
        102_000_000,
        (64, 10),
        (10.64, 2.84, 0.827),
        "NVIDIA DeepLearningExamples, ResNet-50 eager PyTorch FP32, V100-16G, NGC 21.03",
    ),
    "bert-base-s128-fp16": _Row(
        219_000_000,
        (48, 6),
        (0.0, 4.45, 0.501),
        "NVIDIA DeepLearningExamples, BERT-base s128 FP16 TensorFlow 20.06, V100",
    ),
    "bert-base-s384-fp16": _Row(
        219_000_000,
        (96, 24),
        (0.0, 4.26, 1.882),
        "NVIDIA DeepLearningExamples, BERT-base s384 FP16 TensorFlow 20.06, V100",
    ),
    "bert-large-s128-fp16": _Row(
        670_000_000,
        (96, 16),
        (0.0, 8.74, 1.530),
        "NVIDIA DeepLearningExamples, BERT-large s128 FP16 TensorFlow 20.06, V100",
    ),
}
PUBLISHED: tuple[str, ...] = tuple(_ROWS)
"""Names of the models whose latency on a V100-16G is published."""


def published(model: str) -> Profile | None:
    """Return the profile of a published model on a simulated V100, for all item shapes.

    Latency is a fit of `max(floor, fixed + per_item * items)` to the published
    table; workspaces are assumed, of the order of measured activation peaks.

    Returns:
        The profile; None if the model is not among `PUBLISHED`.
    """
    row = _ROWS.get(model)
    if row is None:
        return None
    floor, fixed, item = map(ms_to_ns, row.latency_ms)
    return Profile(
        ProfileKey(model, "simulated"),
        row.weight_bytes,
        row.workspace_mib[0] * MIB,
        row.workspace_mib[1] * MIB,
        Latency(floor, fixed, item, "normal", _SIGMA),
        source=f"published: {row.source}; workspace assumed",
    )
