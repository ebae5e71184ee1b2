"""Colours: the same model has the same colour everywhere, in both themes, for everyone."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

PALETTE = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#B8A000",
)
"""Okabe and Ito's colours, told apart with every kind of colour vision; the yellow darkened."""
OTHER = "#8C8C8C"
FREE = "rgba(140,140,140,0.12)"
HATCH = "rgba(140,140,140,0.55)"
MARKS = {"policy": "#B5629A", "evict": "#E69F00", "load": "#009E73", "alert": "#D55E00"}
LETTERS = {"policy": "P", "evict": "E", "load": "L", "alert": "!"}


def colour_of(name: str, known: Sequence[str]) -> str:
    """Return a model's or device's colour.

    It follows from its place among all that the station was told of, not from
    a rank: traffic, evictions and later models change nobody's colour. A
    stranger, such as a model of an old run, has one that follows from its name.
    """
    index = known.index(name) if name in known else zlib.crc32(name.encode())
    return PALETTE[index % len(PALETTE)]


def colours_of(known: Sequence[str]) -> dict[str, str]:
    """Return the colours of all known names, and of what is left over."""
    return {name: colour_of(name, known) for name in known} | {"other": OTHER}
