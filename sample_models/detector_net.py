"""Find text on a page: a light convolutional backbone, a feature pyramid, a probability map."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from sample_models.layers import Affine, ChannelGate, channels_last, depthwise

# Per stage of the backbone: (channels in, channels out, kernel, stride, gated).
STAGES: tuple[tuple[tuple[int, int, int, int, bool], ...], ...] = (
    ((16, 32, 3, 1, False),),
    ((32, 48, 3, 2, False), (48, 48, 3, 1, False)),
    ((48, 96, 3, 2, False), (96, 96, 3, 1, False)),
    ((96, 192, 3, 2, False), *((192, 192, 5, 1, False),) * 4),
    ((192, 384, 5, 2, True), (384, 384, 5, 1, True), *((384, 384, 5, 1, False),) * 2),
)
LATERAL_CHANNELS = (12, 18, 42, 360)
PYRAMID_CHANNELS = 96
HEAD_CHANNELS = 24


class ScaledHardswish(nn.Module):
    """Apply hardswish, then a learned scale and shift."""

    def __init__(self) -> None:
        super().__init__()
        self.affine = Affine()

    def forward(self, x: Tensor) -> Tensor:
        """Return the activation, same shape."""
        return self.affine(functional.hardswish(x))


class Block(nn.Module):
    """Mix pixels channel by channel, then channels pixel by pixel.

    A block that halves the size has no activation between the two.
    """

    def __init__(self, cin: int, cout: int, *, kernel: int, stride: int, gated: bool) -> None:
        super().__init__()
        self.spatial = depthwise(cin, kernel, stride=stride)
        self.middle = ScaledHardswish() if stride == 1 else nn.Identity()
        self.gate = ChannelGate(cin, 1 / 6) if gated else nn.Identity()
        self.mix = nn.Conv2d(cin, cout, 1)
        self.last = ScaledHardswish()

    def forward(self, x: Tensor) -> Tensor:
        """Return `(batch, cout, height / stride, width / stride)`."""
        return self.last(self.mix(self.gate(self.middle(self.spatial(x)))))


class GatedConvolution(nn.Module):
    """Convolve without a bias and add the gated result to the plain one."""

    def __init__(self, cin: int, cout: int, *, kernel: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(cin, cout, kernel, padding=kernel // 2, bias=False)
        self.gate = ChannelGate(cout, 0.2)

    def forward(self, x: Tensor) -> Tensor:
        """Return `(batch, cout, height, width)`."""
        y = self.convolution(x)
        return y + self.gate(y)


class DetectorNet(nn.Module):
    """Map a page to the probability that a pixel is text.

    Modules are registered in the order in which they run in the original
    graph: the converter pairs them with its weights by position.

    Source: PP-OCRv4 mobile detection (LCNetV3, RSE-FPN, DB head), PaddleOCR.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, 2, 1)
        self.stages = nn.ModuleList(
            nn.Sequential(
                *(
                    Block(cin, cout, kernel=kernel, stride=stride, gated=gated)
                    for cin, cout, kernel, stride, gated in stage
                )
            )
            for stage in STAGES
        )
        widths = [stage[-1][1] for stage in STAGES[1:]]
        self.laterals = nn.ModuleList(
            nn.Conv2d(width, channels, 1)
            for width, channels in zip(widths, LATERAL_CHANNELS, strict=True)
        )
        # Both lists run from the coarsest level to the finest.
        self.inputs = nn.ModuleList(
            GatedConvolution(channels, PYRAMID_CHANNELS, kernel=1)
            for channels in reversed(LATERAL_CHANNELS)
        )
        self.outputs = nn.ModuleList(
            GatedConvolution(PYRAMID_CHANNELS, HEAD_CHANNELS, kernel=3)
            for _ in LATERAL_CHANNELS
        )
        self.head = nn.Conv2d(PYRAMID_CHANNELS, HEAD_CHANNELS, 3, padding=1)
        self.enlarge = nn.ConvTranspose2d(HEAD_CHANNELS, HEAD_CHANNELS, 2, 2)
        self.finish = nn.ConvTranspose2d(HEAD_CHANNELS, 1, 2, 2)

    def forward(self, x: Tensor) -> Tensor:
        """Return the probability map `(batch, 1, height, width)`.

        Args:
            x: float32 (batch, 3, height, width), BGR in [-1, 1], sides
                multiples of 32.
        """
        y = self.head(self._pyramid(self._features(channels_last(x))))
        y = functional.relu(self.enlarge(functional.relu(y)))
        return self.finish(y).sigmoid()

    def _features(self, x: Tensor) -> list[Tensor]:
        """Return the lateral features, coarsest first; the wide ones are not kept."""
        x = self.stages[0](self.stem(x))
        features: list[Tensor] = []
        for stage, lateral in zip(list(self.stages)[1:], self.laterals, strict=True):
            x = stage(x)
            features.insert(0, lateral(x))
        return features

    def _pyramid(self, features: list[Tensor]) -> Tensor:
        """Return the levels merged at a quarter of the page's size."""
        levels: list[Tensor] = []
        for feature, enter in zip(features, self.inputs, strict=True):
            level = enter(feature)
            if levels:
                level = level + functional.interpolate(levels[-1], scale_factor=2.0)
            levels.append(level)
        merged = [
            functional.interpolate(leave(level), scale_factor=float(scale))
            for level, leave, scale in zip(levels, self.outputs, (8, 4, 2, 1), strict=True)
        ]
        return torch.cat(merged, 1)
