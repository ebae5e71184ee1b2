"""Tell whether a line of text is upright or upside down: a small inverted-residual network."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn import functional

from sample_models.layers import ChannelGate, channels_last, depthwise

LAST_CHANNELS = 200
CLASSES = 2
GATE_SLOPE = 0.2


@dataclass(frozen=True, slots=True)
class Shape:
    """Describe one inverted residual block."""

    cin: int
    wide: int
    cout: int
    kernel: int = 5
    stride: int | tuple[int, int] = 1
    gated: bool = True
    smooth: bool = True


BLOCKS = (
    Shape(8, 8, 8, 3, (2, 1), smooth=False),
    Shape(8, 24, 8, 3, (2, 1), gated=False, smooth=False),
    Shape(8, 32, 8, 3, gated=False, smooth=False),
    Shape(8, 32, 16, stride=(2, 1)),
    Shape(16, 88, 16),
    Shape(16, 88, 16),
    Shape(16, 40, 16),
    Shape(16, 48, 16),
    Shape(16, 104, 32, stride=(2, 1)),
    Shape(32, 200, 32),
    Shape(32, 200, 32),
)


class InvertedResidual(nn.Module):
    """Widen, mix pixels, gate, narrow; add the input where the shapes allow it."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.activate = functional.hardswish if shape.smooth else functional.relu
        self.expand = nn.Conv2d(shape.cin, shape.wide, 1)
        self.spatial = depthwise(shape.wide, shape.kernel, stride=shape.stride)
        self.gate = ChannelGate(shape.wide, GATE_SLOPE) if shape.gated else nn.Identity()
        self.project = nn.Conv2d(shape.wide, shape.cout, 1)
        self.is_residual = shape.stride == 1 and shape.cin == shape.cout

    def forward(self, x: Tensor) -> Tensor:
        """Return `(batch, cout, height / stride, width)`."""
        y = self.activate(self.expand(x))
        y = self.project(self.gate(self.activate(self.spatial(y))))
        return x + y if self.is_residual else y


class DirectionNet(nn.Module):
    """Map a line image to the probabilities of 0° and 180°.

    Source: PP-OCR mobile 2.0 angle classifier (MobileNetV3-small x0.35), PaddleOCR.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, 2, 1)
        self.blocks = nn.Sequential(*map(InvertedResidual, BLOCKS))
        self.last = nn.Conv2d(BLOCKS[-1].cout, LAST_CHANNELS, 1)
        self.classify = nn.Linear(LAST_CHANNELS, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        """Return `(batch, 2)`: the probabilities of upright and of upside down.

        Args:
            x: float32 (batch, 3, 48, width), BGR in [-1, 1], width 192 usually.
        """
        y = functional.hardswish(self.stem(channels_last(x)))
        y = functional.hardswish(self.last(self.blocks(y)))
        y = functional.max_pool2d(y, 2).mean((2, 3))
        return self.classify(y).softmax(1)
