"""Load: arrivals from a seed or a trace, and the generator that sends them."""
