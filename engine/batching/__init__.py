"""Batching: which requests may go together, when they leave, who is let in."""
