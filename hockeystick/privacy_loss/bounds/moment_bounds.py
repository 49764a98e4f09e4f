"""Proven enclosures of a loss's mean, variance and third absolute central moment.

The outputs are divided into cells. On each, the masses under P and under Q are known but for their
round-off, the loss is monotone in the output, and each integrand falls towards one loss and rises
from it on, so that its extremes are at the cell's ends. The means are sums of positive terms, as in
``cumulants``. With ``c`` near the mean m, ``Var L = E[(L-c)^2] - (m-c)^2``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, final

import numpy as np

from hockeystick.numerics import ULP
from hockeystick.privacy_loss.bounds.cumulants import mean_integrands

if TYPE_CHECKING:
    from hockeystick.kernels.series import Array

# Covers the round-off of sums of positive terms, and of elementary functions.
OUTWARD: Final = 1e-11


# Bounds ``E[(|L| + offset)^power]`` beyond the cells, given the power and the offset.
TailBound: TypeAlias = Callable[[int, float], float]


class LawBounds(NamedTuple):
    """Enclosures of a mean and a variance, and an upper bound of ``E|L - E[L]|^3``."""

    mean_lower: float
    mean_upper: float
    variance_lower: float
    variance_upper: float
    third_upper: float


class MomentBounds(NamedTuple):
    """The enclosures under each of a loss's two distributions."""

    under_p: LawBounds
    under_q: LawBounds


@final
@dataclass(frozen=True, slots=True)
class Range:
    """Lower and upper bounds, cell by cell."""

    low: Array
    high: Array


@final
@dataclass(frozen=True, slots=True)
class SignedCells:
    """Cells where the loss has one sign: bounds of ``|L|``, and of the masses under P and Q."""

    size: Range
    p: Range
    q: Range

    def swapped(self) -> SignedCells:
        """Return the same with P and Q exchanged."""
        return SignedCells(self.size, self.q, self.p)


def of_signed_cells(
    above: SignedCells,
    below: SignedCells,
    tail_bound: TailBound,
    zero_mass: tuple[float, float] = (0.0, 0.0),
) -> MomentBounds:
    """Return the enclosures given the positive losses, the negative ones and the mass at 0."""
    near, far = _evaluated(above.size), _evaluated(below.size)
    rest = tail_bound(1, 0.0)
    mean_p = _total([(above.p, near[0]), (below.q, far[1])], rest)
    mean_q = _total([(above.p, near[1]), (below.q, far[0])], rest)
    return MomentBounds(
        _law((above.size, above.p), (below.size, below.p), zero_mass, mean_p, tail_bound),
        _law(
            (above.size, above.q),
            (below.size, below.q),
            zero_mass,
            (-mean_q[1], -mean_q[0]),
            tail_bound,
        ),
    )


def _evaluated(size: Range) -> tuple[Range, Range]:
    """Return ``k`` and ``l`` over each cell: they increase."""
    low, high = mean_integrands(size.low), mean_integrands(size.high)
    return Range(low[0], high[0]), Range(low[1], high[1])


def _law(
    above: tuple[Range, Range],
    below: tuple[Range, Range],
    zero_mass: tuple[float, float],
    mean: tuple[float, float],
    tail_bound: TailBound,
) -> LawBounds:
    """Return the enclosures under one distribution, from sizes and masses and the mean."""
    centre = 0.5 * (mean[0] + mean[1])
    radius = 1.000001 * (0.5 * (mean[1] - mean[0]) + 4.0 * ULP * abs(centre))
    zero = np.zeros(1)
    at_zero = (Range(zero, zero), Range(zero + zero_mass[0], zero + zero_mass[1]))
    parts = [
        (above[1], _distance(above[0].low, above[0].high, centre)),
        (below[1], _distance(-below[0].high, -below[0].low, centre)),
        (at_zero[1], _distance(zero, zero, centre)),
    ]
    offset = abs(centre) + radius
    squares = _total([(w, _power(d, 2)) for w, d in parts], tail_bound(2, offset))
    cubes = [(w, _power(Range(d.low, d.high + radius), 3)) for w, d in parts]
    third = _total(cubes, tail_bound(3, offset))[1]
    variance = max(squares[0] - radius * radius * (1.0 + OUTWARD), 0.0)
    return LawBounds(*mean, variance, squares[1], third)


def _distance(low: Array, high: Array, centre: float) -> Range:
    """Return the least and the largest distance of a loss between two ends from a point."""
    slack = 2.0 * ULP * (np.maximum(np.abs(low), np.abs(high)) + abs(centre))
    least = np.maximum(np.maximum(low - centre, centre - high) - slack, 0.0)
    return Range(least, np.maximum(high - centre, centre - low) + slack)


def _power(size: Range, exponent: int) -> Range:
    """Return a power of sizes, cell by cell."""
    return Range(size.low**exponent, size.high**exponent)


def _total(parts: list[tuple[Range, Range]], rest: float) -> tuple[float, float]:
    """Return bounds of the integral of a positive function: masses times values, and the rest."""
    low = sum(float((mass.low * value.low).sum()) for mass, value in parts)
    high = sum(float((mass.high * value.high).sum()) for mass, value in parts)
    return low * (1.0 - OUTWARD), high * (1.0 + OUTWARD) + rest
