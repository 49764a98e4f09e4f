"""The choice of one of several, run."""
