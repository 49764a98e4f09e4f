"""Noise on numbers and arrays: the mechanisms of ``mechanisms/noise``, run."""
