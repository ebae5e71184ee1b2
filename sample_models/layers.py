"""Build the small blocks that the three text networks share."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class Affine(nn.Module):
    """Scale and shift by two learned scalars.

    They follow an activation and a zero-padded convolution follows them, so
    they cannot be folded into either neighbour.
    """

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        """Return `x * weight + bias`, any shape."""
        return x * self.weight + self.bias


class ChannelGate(nn.Module):
    """Weigh each channel by what the whole image holds (squeeze and excitation).

    The slope of the gate differs between the networks' parts (1/6 or 0.2);
    the wrong one still looks right on sight and costs accuracy.
    """

    def __init__(self, channels: int, slope: float) -> None:
        super().__init__()
        self.shrink = nn.Conv2d(channels, channels // 4, 1)
        self.expand = nn.Conv2d(channels // 4, channels, 1)
        self.slope = slope

    def forward(self, x: Tensor) -> Tensor:
        """Return `x: float32 (batch, channels, height, width)`, gated, same shape."""
        gate = self.expand(functional.relu(self.shrink(x.mean((2, 3), keepdim=True))))
        return x * (gate * self.slope + 0.5).clamp(0.0, 1.0)


def depthwise(channels: int, kernel: int, *, stride: int | tuple[int, int]) -> nn.Conv2d:
    """Return a convolution that keeps the channels apart and the size, but for its stride."""
    return nn.Conv2d(channels, channels, kernel, stride, kernel // 2, groups=channels)


def channels_last(x: Tensor) -> Tensor:
    """Return the images laid out pixel by pixel: convolutions on a CPU gain 5 to 20 %."""
    return x.contiguous(memory_format=torch.channels_last)
