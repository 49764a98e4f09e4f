"""Answers frozen as a table, to compare with after a change: `python -m benchmarks.frozen`."""
