"""Memory: a device's byte range, what lies in it, and what has to leave."""
