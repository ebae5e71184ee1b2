"""Store a network's weights and build the network from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from sample_models.cache import FETCH


def build_network(make: Callable[[], nn.Module], path: Path) -> nn.Module:
    """Return the network with its weights, ready to run on the CPU.

    It is laid out without memory first and then given its weights: random
    values that are thrown away would cost ten times the load.

    Args:
        make: The network's class, or a function that makes the network.
        path: A safetensors file whose names are the network's own.

    Raises:
        FileNotFoundError: There is no such file; the message says what to run.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path.name} is missing: run `{FETCH}`")
    with torch.device("meta"):
        network = make()
    network.load_state_dict(load_file(path), assign=True)
    return network.eval().requires_grad_(False)


def save_weights(
    state: Mapping[str, Tensor], path: Path, *, metadata: Mapping[str, str]
) -> None:
    """Write weights in one step, so that a reader never sees half a file.

    They stay float32: half precision would halve a file that is not part of
    the project, and move the detector's answers by up to 0.07 at edges.
    """
    unfinished = path.with_suffix(".unfinished")
    save_file(dict(state), unfinished, metadata=dict(metadata))
    unfinished.replace(path)
