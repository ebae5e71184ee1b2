"""Read one handwritten digit: three convolutions and a linear layer, trained here."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor, nn
from torch.nn import functional

WEIGHTS = Path(__file__).parent / "weights" / "digit_reader.safetensors"


class DigitNet(nn.Module):
    """Map an 8 x 8 image to ten scores; trained by `sample_models/train_digits.py`."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 16, 3, padding=1)
        self.second = nn.Conv2d(16, 32, 3, padding=1)
        self.third = nn.Conv2d(32, 64, 3, padding=1)
        self.classify = nn.Linear(64 * 2 * 2, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Return `(batch, 10)`: one score per digit.

        Args:
            x: float32 (batch, 1, 8, 8), ink from 0 to 1.
        """
        x = functional.relu(self.first(x))
        x = functional.max_pool2d(functional.relu(self.second(x)), 2)
        x = functional.max_pool2d(functional.relu(self.third(x)), 2)
        return self.classify(x.flatten(1))
