"""Revisions, in the order of their numbers."""
