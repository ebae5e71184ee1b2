"""Drivers: what brings the core its events and carries out its effects."""
