"""Placement: which device a model's next batch goes to, one file per policy."""
