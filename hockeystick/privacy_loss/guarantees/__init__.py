"""The losses of guarantees."""
