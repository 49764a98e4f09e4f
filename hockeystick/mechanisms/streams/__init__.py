"""Sums of a stream, step by step."""
