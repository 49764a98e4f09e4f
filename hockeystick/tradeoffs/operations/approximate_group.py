"""Groups under (epsilon, delta)-DP: the polygon of the power iterated, in exact arithmetic.

With ``A = e^epsilon`` and ``a = (1 - delta) / (1 + A)``, the power of one record is

    p(alpha) = delta + A alpha up to a,    1 - (1 - delta - alpha) / A up to 1 - delta,    then 1,

and that of g records its iterate ``p^og`` (Dong, Roth and Su 2022, theorem 2.14): no two data sets
at distance g of an (epsilon, delta)-DP mechanism are told apart with more power.

One mechanism attains it at all alpha at once. Let ``U = {0} or (0, 1]``, and ``P_j`` the
distribution on [0, 1] with ``P_j(U <= alpha) = p^oj(alpha)``, j = 0..g; release a draw of ``P_j``,
j the number of records, at most g. Since p is concave and rises, so are its iterates, and the
density of ``P_(j+1)`` over ``P_j`` at u is ``p'(p^oj(u))``, which falls with u: thresholds are the
best tests of both ``P_0`` against ``P_g`` and ``P_j`` against ``P_(j+1)``. These have power p where
``P_j`` has no mass at 0, and at rates below its mass there a chord of p: so neighbours are
(epsilon, delta)-close, in both orders since p is its own mirror, and the ends have ``p^og``.

The first side of ``p^og`` has slope ``e^(g epsilon)`` and begins at ``delta (A^g - 1) / (A - 1)``
as long as that of g - 1 records is at most a: then (g epsilon, that delta)-DP is attained. It is
not all: a group under epsilon-DP is told apart like discrete Laplace noise of scale 1/epsilon at
distance g, and less well than a randomized response of g epsilon.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Final

from hockeystick.numerics import ULP
from hockeystick.tradeoffs.functions.outcomes import Outcomes
from hockeystick.tradeoffs.functions.piecewise import PiecewiseLinearTradeOff, polyline_tradeoff
from hockeystick.tradeoffs.functions.polyline import STEEPEST, Corners

_ONE: Final = Fraction(1)


def approximate_group(
    growth: Fraction, delta: Fraction, size: int, *, relative_error: float
) -> PiecewiseLinearTradeOff:
    """Return ``1 - p^og`` of a growth A >= 1 and a delta below 1.

    Args:
        growth: ``A``, at least ``e^epsilon`` for the function to be a lower bound.
        delta: The delta of one record.
        size: The number g of records.
        relative_error: How far the masses may be off, in relation to each.
    """
    alphas = _corners(growth, delta, size)
    powers = [_iterated(alpha, growth, delta, size) for alpha in alphas]
    masses = [(Fraction(0), powers[0])] if powers[0] else []
    masses += [
        (b - a, v - u) for (a, b), (u, v) in zip(pairwise(alphas), pairwise(powers), strict=True)
    ]
    outcomes = Outcomes(tuple(masses), tuple(masses), relative_error)
    rising = [list(accumulate(side, initial=Fraction(0))) for side in zip(*masses, strict=True)]
    rates, found = (tuple(map(float, side)) for side in rising)
    rests, betas = (tuple(float(1 - x) for x in side) for side in rising)
    ratios = tuple(float(min(q / p, Fraction(STEEPEST))) if p else math.inf for p, q in masses)
    slack = relative_error + 4.0 * ULP
    return polyline_tradeoff(Corners(rates, found, rests, betas, ratios, slack), outcomes)


def _corners(growth: Fraction, delta: Fraction, size: int) -> list[Fraction]:
    """Return the rates from 0 to 1 between which the iterate is linear."""
    found = {Fraction(0), _ONE}
    for start in ((1 - delta) / (1 + growth), 1 - delta):
        rate = start
        for _ in range(size):
            found.add(rate)
            if rate < delta:
                break
            rate = _inverse(rate, growth, delta)
    return sorted(found)


def _inverse(power: Fraction, growth: Fraction, delta: Fraction) -> Fraction:
    """Return the rate at which one record has a power that is at least delta."""
    bend = (growth + delta) / (1 + growth)
    steep = (power - delta) / growth
    return steep if power <= bend else 1 - delta - growth * (1 - power)


def _iterated(alpha: Fraction, growth: Fraction, delta: Fraction, size: int) -> Fraction:
    """Return the power of a group at a rate."""
    power = alpha
    for _ in range(size):
        if power >= 1 - delta:
            return _ONE
        power = min(delta + growth * power, 1 - (1 - delta - power) / growth)
    return power
