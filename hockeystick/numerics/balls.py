"""Balls: numbers with a bound on their distance from the truth."""

from __future__ import annotations

from typing import NamedTuple


class Ball(NamedTuple):
    """A number and a bound on its distance from the truth."""

    midpoint: float
    radius: float
