"""Balls, and step 4 of the argument: the error of Gauss and Legendre's rule."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias

from flint import acb, arb

Ball: TypeAlias = Any  # a real number (arb) or a complex one (acb)

RHO: Final = 2.6  # any number above 1 is right
LN2: Final = math.log(2)


class NotCovered(Exception):  # noqa: N818 - it is no error
    """An answer of a known form that cannot be judged here."""


@cache
def rule(n: int, bits: int) -> list[tuple[Ball, Ball]]:
    """Return nodes on [-1, 1] and weights of Gauss and Legendre's rule of n points."""
    return [arb.legendre_p_root(n, k, weight=True) for k in range(n)]


def ellipse(a: complex, b: complex) -> Ball:
    """Return a ball that holds the ellipse of 4 about the segment from a to b."""
    half, centre = (b - a) / 2, (a + b) / 2
    long, short, axis = RHO + 1 / RHO, RHO - 1 / RHO, half / 2 * (1 + 1e-9)
    rounding = 1e-15 * (abs(a) + abs(b))
    width = math.hypot(long * axis.real, short * axis.imag) + rounding
    height = math.hypot(long * axis.imag, short * axis.real) + rounding
    return acb(arb(centre.real, width), arb(centre.imag, height))


def points_needed(top: Ball, half: float, log_goal: float) -> float:
    """Return how many points bring the bound of 4 below a goal."""
    log_top = float(top.log()) if top > 0 else -1e9
    return (
        max(2, math.ceil((log_top + math.log(half) + 3.5 - log_goal) / (2 * math.log(RHO))))
        if log_top < 1e9
        else math.inf
    )


def many(bits: float) -> float:
    """Return from how many points on two shorter segments take less time."""
    return 8 + bits / 2


def gauss_error(top: Ball, half: float, n: int) -> Ball:
    """Return the bound of 4."""
    rho = arb(RHO)
    return (
        arb(64) / 15 * top * rho ** (2 - 2 * n) / (1 - rho**-2) * arb(half, 1e-9 * half)
    ).upper()


def within(radius: Ball) -> Ball:
    """Return a ball around 0 that holds all complex numbers up to a size."""
    return acb(arb(0, radius), arb(0, radius))


def normal_tail(x: Ball) -> Ball:
    """Return the probability that a standard normal exceeds x."""
    return (x / arb(2).sqrt()).erfc() / 2


def ball(value: Fraction) -> Ball:
    """Return a ball around a fraction."""
    return arb(value.numerator) / arb(value.denominator)


def point(z: complex) -> Ball:
    """Return a floating-point number exactly."""
    return acb(z.real, z.imag)


def middle(value: Ball) -> float:
    """Return the floating-point number in the middle of a ball."""
    return float(value.mid())


class Box(NamedTuple):
    """The z = c + iy with ``left <= c <= right`` and ``low <= y <= high``."""

    left: float
    right: float
    low: float
    high: float

    def corners(self) -> list[tuple[float, float]]:
        return [(c, y) for c in {self.left, self.right} for y in {self.low, self.high}]
