"""Give the fixed request stream of the memory-pool benchmark: 16 GiB, 64 models, workspaces.

The models do not all fit. Popularity is Zipf 0.9 over a shuffled order that drifts: every 1000
requests one tenth of the ranks is reshuffled. A model whose workspace is out is in use and must
not be evicted.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from engine.units import MIB

ARENA_BYTES = 16 * 1024 * MIB
MODEL_COUNT = 64
REQUEST_COUNT = 6000
DRIFT_EVERY = 1000
SEEDS = (1, 2, 3, 4, 5)


def models(seed: int) -> list[int]:
    """Return the weight bytes of each model, log-uniform from 5 MiB to 2.6 GiB."""
    rng = random.Random(seed)
    low, high = 5 * MIB, 2662 * MIB
    return [int(low * (high / low) ** rng.random()) // 512 * 512 for _ in range(MODEL_COUNT)]


def requests(seed: int) -> Iterator[tuple[int, int, int]]:
    """Yield each request as (model, workspace bytes, hold).

    The request needs `model` resident and a workspace, which is given back
    when `hold` further requests have started.
    """
    rng = random.Random(seed + 1000)
    weight_bytes = models(seed)
    item_bytes = [rng.randint(10, 64) * MIB for _ in range(MODEL_COUNT)]
    order = list(range(MODEL_COUNT))
    rng.shuffle(order)
    popularity = [1 / (rank + 1) ** 0.9 for rank in range(MODEL_COUNT)]
    for index in range(REQUEST_COUNT):
        if index and index % DRIFT_EVERY == 0:
            _drift(order, rng)
        model = rng.choices(order, popularity)[0]
        items = rng.choice((1, 2, 4, 8))
        yield model, weight_bytes[model] // 10 + item_bytes[model] * items, rng.randint(0, 3)


def _drift(order: list[int], rng: random.Random) -> None:
    """Shuffle one tenth of the ranks among themselves."""
    some = rng.sample(range(MODEL_COUNT), MODEL_COUNT // 10)
    values = [order[index] for index in some]
    rng.shuffle(values)
    for index, value in zip(some, values, strict=True):
        order[index] = value
