"""Map a sentence to a direction in space: much weight, little work; an optional extra."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

WIDTH = 384
HEADS = 12
LAYERS = 6
WORDS = 30_522
POSITIONS = 512
EPSILON = 1e-12

# From the file's names to this network's; the longer ones first.
NAMES = (
    ("encoder.layer.", "layers."),
    ("embeddings.word_embeddings", "words"),
    ("embeddings.position_embeddings", "positions"),
    ("embeddings.token_type_embeddings", "kinds"),
    ("embeddings.LayerNorm", "norm"),
    ("attention.self.", ""),
    ("attention.output.dense", "attended"),
    ("attention.output.LayerNorm", "norm_attention"),
    ("intermediate.dense", "widen"),
    ("output.dense", "narrow"),
    ("output.LayerNorm", "norm_mlp"),
)
UNUSED = ("pooler.", "embeddings.position_ids")


class Layer(nn.Module):
    """Let tokens see each other, then transform each one; norms come after."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.attended = nn.Linear(WIDTH, WIDTH)
        self.norm_attention = nn.LayerNorm(WIDTH, EPSILON)
        self.widen = nn.Linear(WIDTH, 4 * WIDTH)
        self.narrow = nn.Linear(4 * WIDTH, WIDTH)
        self.norm_mlp = nn.LayerNorm(WIDTH, EPSILON)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Return `x: float32 (batch, tokens, 384)`, same shape.

        Args:
            x: The tokens.
            mask: bool (batch, 1, 1, tokens), true where a token may be seen.
        """
        query, key, value = (
            project(x).unflatten(2, (HEADS, WIDTH // HEADS)).transpose(1, 2)
            for project in (self.query, self.key, self.value)
        )
        seen = functional.scaled_dot_product_attention(query, key, value, mask)
        x = self.norm_attention(x + self.attended(seen.transpose(1, 2).flatten(2)))
        return self.norm_mlp(x + self.narrow(functional.gelu(self.widen(x))))


class EmbedderNet(nn.Module):
    """Map token numbers to a vector of length 1 that stands for the sentence.

    Source: all-MiniLM-L6-v2, sentence-transformers.
    """

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.positions = nn.Embedding(POSITIONS, WIDTH)
        self.kinds = nn.Embedding(2, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, EPSILON)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))

    def forward(self, tokens: Tensor) -> Tensor:
        """Return float32 (batch, 384).

        Args:
            tokens: int64 (batch, at most 512), 0 for padding; the first one
                counts whatever it is, so that no row is empty.
        """
        mask = (tokens != 0) | (torch.arange(tokens.shape[1], device=tokens.device) == 0)
        positions = self.positions.weight[: tokens.shape[1]]
        x = self.norm(self.words(tokens) + positions + self.kinds.weight[0])
        for layer in self.layers:
            x = layer(x, mask[:, None, None])
        weight = mask[:, :, None].to(x.dtype)
        return functional.normalize((x * weight).sum(1) / weight.sum(1), dim=1)


def build_embedder(folder: Path) -> nn.Module:
    """Return the network with the weights of the installed package's folder."""
    with torch.device("meta"):
        network = EmbedderNet()
    stored = load_file(folder / "model.safetensors")
    state = {_own_name(k): v for k, v in stored.items() if not k.startswith(UNUSED)}
    network.load_state_dict(state, assign=True)
    return network.eval().requires_grad_(False)


def _own_name(stored: str) -> str:
    name = stored
    for old, new in NAMES:
        name = name.replace(old, new)
    return name
