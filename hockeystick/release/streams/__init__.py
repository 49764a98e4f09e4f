"""Sums over time, run."""
