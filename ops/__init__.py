"""Ops, the application: one public call for all that a page or a notebook can do."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ops.station import Station

__all__ = ["Station"]


def __getattr__(name: str) -> object:
    """Import the station when it is asked for: who runs a notebook needs no database."""
    if name == "Station":
        from ops.station import Station  # brings SQLAlchemy and the engine

        return Station
    raise AttributeError(f"module 'ops' has no attribute {name!r}")
