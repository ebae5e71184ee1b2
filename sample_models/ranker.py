"""Rank by a wide perceptron with seeded weights: the case bound by reading weights."""

from __future__ import annotations

import torch
from torch import nn

WIDTH = 2048
LAYERS = 3
SEED = 0


def build_ranker() -> nn.Module:
    """Return three linear layers of 2048 x 2048 with ReLU, the same weights every time.

    Nothing is trained: one item reads as many weights as sixteen do, so this
    model shows what a batch is worth. The caller's chance is left as it was.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        layers = [m for _ in range(LAYERS) for m in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
    return nn.Sequential(*layers).eval().requires_grad_(False)
