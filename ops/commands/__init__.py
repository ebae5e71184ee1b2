"""Commands: one module for each word after `millpond`."""
