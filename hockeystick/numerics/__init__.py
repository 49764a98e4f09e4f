"""Arithmetic that knows its error; mpmath's precision."""
