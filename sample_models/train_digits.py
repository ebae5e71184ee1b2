"""Train the digit reader, hold digits out: `python -m sample_models.train_digits`."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional

from sample_models.digits import WEIGHTS, DigitNet
from sample_models.samples import HELD_OUT, LARGEST_INK

SEED = 0
HELD_OUT_COUNT = 360
EPOCHS = 40
BATCH = 64
RATE = 4e-3


def load_digits() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the 1 797 images `(n, 8, 8)` and their digits, in one fixed random order."""
    from sklearn import datasets  # a development extra

    digits = datasets.load_digits()
    order = np.random.default_rng(SEED).permutation(len(digits.target))
    return digits.images[order].astype(np.uint8), digits.target[order].astype(np.uint8)


def shifted(x: Tensor) -> Tensor:
    """Return the images `(n, 1, 8, 8)`, each moved by up to a pixel each way."""
    padded = functional.pad(x, (1, 1, 1, 1))[:, 0]
    steps = torch.arange(x.shape[2])
    down, right = torch.randint(0, 3, (2, len(x), 1))
    rows, columns = (down + steps)[:, :, None], (right + steps)[:, None, :]
    return padded[torch.arange(len(x))[:, None, None], rows, columns][:, None]


def train(x: Tensor, y: Tensor) -> DigitNet:
    """Return a network trained on the images `x` and digits `y`."""
    torch.manual_seed(SEED)
    network = DigitNet()
    optimiser = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=0.05)
    steps = EPOCHS * -(-len(x) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=steps)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(x)).split(BATCH):
            optimiser.zero_grad()
            scores = network(shifted(x[rows]))
            functional.cross_entropy(scores, y[rows], label_smoothing=0.05).backward()
            optimiser.step()
            schedule.step()
    return network.eval()


def main() -> None:
    """Train, write weights and held-out digits, and print the accuracy."""
    torch.set_num_threads(1)
    images, digits = load_digits()
    x = torch.from_numpy(images.astype(np.float32) / LARGEST_INK)[:, None]
    y = torch.from_numpy(digits.astype(np.int64))
    network = train(x[HELD_OUT_COUNT:], y[HELD_OUT_COUNT:])
    with torch.inference_mode():
        answers = network(x[:HELD_OUT_COUNT]).argmax(1)
    accuracy = (answers == y[:HELD_OUT_COUNT]).float().mean().item()
    save_file(network.state_dict(), WEIGHTS)
    np.savez_compressed(
        HELD_OUT, images=images[:HELD_OUT_COUNT], digits=digits[:HELD_OUT_COUNT]
    )
    print(f"accuracy on {HELD_OUT_COUNT} held-out digits: {accuracy:.2%}")


if __name__ == "__main__":
    main()
