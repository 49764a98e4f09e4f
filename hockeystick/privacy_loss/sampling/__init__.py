"""Mechanisms on a part of the data."""
