"""Colours: the same model has the same colour everywhere, in both themes, for everyone."""

from __future__ import annotations

from collections.abc import Sequence

PALETTE = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#B8A000",
    "#8C8C8C",
)
"""Okabe and Ito's colours, told apart with every kind of colour vision; the yellow darkened."""
FREE = "rgba(140,140,140,0.12)"
HATCH = "rgba(140,140,140,0.55)"
MARKS = {"policy": "#CC79A7", "evict": "#E69F00", "load": "#009E73", "alert": "#D55E00"}
LETTERS = {"policy": "P", "evict": "E", "load": "L", "alert": "!"}


def colour_of(name: str, known: Sequence[str]) -> str:
    """Return a model's or device's colour: by its place among all known ones."""
    names = sorted(known)
    return PALETTE[names.index(name) % len(PALETTE)] if name in names else PALETTE[-1]
