"""Read a line of text: a convolutional backbone, two transformer blocks, one class per step."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from sample_models.layers import ChannelGate, channels_last, depthwise

LATIN_CLASSES = 543
WIDTH = 120
HEADS = 8

# The backbone's blocks: (channels in, channels out, stride, gated).
BLOCKS: tuple[tuple[int, int, int | tuple[int, int], bool], ...] = (
    (96, 96, 1, True),
    (96, 96, 1, False),
    (96, 96, 1, False),
    (96, 192, (2, 1), False),
    *((192, 192, 1, True), (192, 192, 1, False)) * 3,
    (192, 384, (2, 1), False),
    (384, 384, 1, True),
    (384, 384, 1, False),
)


class Stem(nn.Module):
    """Shrink the image four times through two branches, one of them pooled."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 48, 3, 2, 1)
        self.narrow = nn.Conv2d(48, 24, 2)
        self.widen = nn.Conv2d(24, 48, 2)
        self.merge = nn.Conv2d(96, 48, 3, 2, 1)
        self.last = nn.Conv2d(48, 96, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return `(batch, 96, height / 4, width / 4)`."""
        x = functional.relu(self.first(x))
        y = functional.relu(self.narrow(_pad(x)))
        y = functional.relu(self.widen(_pad(y)))
        # x is not negative, so zero padding does not change the maximum.
        z = functional.max_pool2d(_pad(x), 2, 1)
        y = functional.relu(self.merge(torch.cat((z, y), 1)))
        return functional.relu(self.last(y))


def _pad(x: Tensor) -> Tensor:
    """Add a row below and a column on the right, so that 2 x 2 windows keep the size."""
    return functional.pad(x, (0, 1, 0, 1))


class Block(nn.Module):
    """Mix pixels, then channels; add the two where the size stays."""

    def __init__(
        self, cin: int, cout: int, *, stride: int | tuple[int, int], gated: bool
    ) -> None:
        super().__init__()
        self.spatial = depthwise(cin, 3, stride=stride)
        self.gate = ChannelGate(cin, 1 / 6) if gated else nn.Identity()
        self.expand = nn.Conv2d(cin, 2 * cin, 1)
        self.project = nn.Conv2d(2 * cin, cout, 1)
        self.is_residual = stride == 1

    def forward(self, x: Tensor) -> Tensor:
        """Return `(batch, cout, height / stride, width)`."""
        x = self.gate(self.spatial(x))
        y = self.project(functional.gelu(self.expand(x)))
        return x + y if self.is_residual else y


class TransformerBlock(nn.Module):
    """Let the steps of a line see each other, then transform each one."""

    def __init__(self) -> None:
        super().__init__()
        self.norm_attention = nn.LayerNorm(WIDTH, eps=1e-5)
        self.query_key_value = nn.Linear(WIDTH, 3 * WIDTH)
        self.attended = nn.Linear(WIDTH, WIDTH)
        self.norm_mlp = nn.LayerNorm(WIDTH, eps=1e-5)
        self.widen = nn.Linear(WIDTH, 2 * WIDTH)
        self.narrow = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """Return `x: float32 (batch, steps, 120)`, same shape."""
        x = x + self.attended(self._attend(self.query_key_value(self.norm_attention(x))))
        return x + self.narrow(functional.silu(self.widen(self.norm_mlp(x))))

    def _attend(self, packed: Tensor) -> Tensor:
        """Return the attention of the heads, joined: `(batch, steps, 120)`."""
        heads = packed.unflatten(2, (3, HEADS, WIDTH // HEADS)).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(heads[0], heads[1], heads[2])
        return attended.transpose(1, 2).flatten(2)


class RecognizerNet(nn.Module):
    """Map a line image to the best class and its probability at each step.

    The output is packed so that it stays small: two numbers a step instead
    of one probability per class. Class numbers below 2 ** 24 are exact in
    float32.

    Source: PP-OCRv6 small recognition, PaddleOCR.
    """

    def __init__(self, classes: int = LATIN_CLASSES) -> None:
        super().__init__()
        self.stem = Stem()
        self.blocks = nn.Sequential(
            *(
                Block(cin, cout, stride=stride, gated=gated)
                for cin, cout, stride, gated in BLOCKS
            )
        )
        self.skip = nn.Conv2d(BLOCKS[-1][1], WIDTH, 1)
        self.enter = nn.Conv2d(BLOCKS[-1][1], WIDTH, 1)
        self.along = nn.Conv2d(WIDTH, WIDTH, (1, 7), padding=(0, 3), groups=WIDTH)
        self.transform = nn.Sequential(TransformerBlock(), TransformerBlock())
        self.norm = nn.LayerNorm(WIDTH, eps=1e-6)
        self.classify = nn.Linear(WIDTH, classes)

    def probabilities(self, x: Tensor) -> Tensor:
        """Return `(batch, width / 8, classes)`; class 0 is the blank.

        Args:
            x: float32 (batch, 3, 48, width), BGR in [-1, 1].
        """
        x = functional.avg_pool2d(self.blocks(self.stem(channels_last(x))), (3, 2))
        skip = functional.silu(self.skip(x))
        x = functional.silu(self.enter(x))
        x = x + functional.silu(self.along(x))
        steps = self.norm(self.transform(x.squeeze(2).transpose(1, 2)))
        return self.classify(steps + skip.squeeze(2).transpose(1, 2)).softmax(2)

    def forward(self, x: Tensor) -> Tensor:
        """Return `(batch, width / 8, 2)`: the best class and its probability at each step.

        Args:
            x: float32 (batch, 3, 48, width), BGR in [-1, 1].
        """
        best = self.probabilities(x).max(2)
        return torch.stack((best.indices.to(x.dtype), best.values), 2)
