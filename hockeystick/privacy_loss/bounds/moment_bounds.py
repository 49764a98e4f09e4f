"""Proven enclosures of a loss's mean, variance and third absolute central moment.

The outputs are cut into cells. On each, the masses under P and under Q are known but for their
round-off, the loss is monotone in the output, and each integrand falls towards one loss and rises
from it on, so that its extremes are at the cell's ends. The means are sums of positive terms, as in
``_moments``. With ``c`` near the mean m, ``Var L = E[(L-c)^2] - (m-c)^2``.

Beyond ``v = u - nu >= 20`` standard deviations of either normal, the loss is below
``t = mu u - mu^2/2 <= mu^2/2 + mu v`` and, with ``a = mu^2/2 + |c|``,

    Int (a + mu v)^k phi(v) dv <= (a + 20 mu)^k Int phi(v) e^(k (v-20)/20) dv < 1e-88 (a + 20 mu)^k

for k <= 3: ``phi(20) / (20 - 3/20) < 2.8e-89``. The masses of a cell carry a bound on their error
that covers 32 ulp in scipy's ``ndtr``, the rounding of its arguments and every reading of the
parameters within one unit in the last place; so do the losses, as in the kernels.

Losses that come with cells of their own are bounded in the same way (``_cell_moments``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, singledispatch
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, final

from hockeystick.numerics import ULP
from hockeystick.privacy_loss.bounds.cumulants import fall, log_ratio, unlikely
from hockeystick.privacy_loss.core.base import PrivacyLoss
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.registry import NoAnalysisError
from hockeystick.privacy_loss.guarantees.two_point import RandomizedResponsePairLoss
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss
from hockeystick.privacy_loss.sampling.fixed_size_gaussian import FixedSizeGaussianLoss
from hockeystick.privacy_loss.sampling.sampled_gaussian import SampledGaussianLoss

if TYPE_CHECKING:
    from hockeystick.kernels.series import Array

# Covers the round-off of the sums below, all of positive terms, and of elementary functions.
_OUTWARD: Final = 1e-11
# Where cells end, in standard deviations, and where they get wide; how many of both there are.
_END: Final = 21.0
_WIDE: Final = 9.0
_NARROW_CELLS: Final = 60_000
_WIDE_CELLS: Final = 2_000
# The epsilons of which the third power, and e^-eps, are normal floats.
_SMALLEST: Final = 1e-90
_LARGEST: Final = 600.0
# What is left beyond the last cell.
_REST: Final = 1e-88


# Bounds ``E[(|L| + offset)^power]`` over what the cells leave out, given the power and the offset.
Beyond: TypeAlias = Callable[[int, float], float]


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
class Cells:
    """Where the loss has one sign: bounds of its size, and of the masses under P and under Q."""

    size: Range
    p: Range
    q: Range

    def swapped(self) -> Cells:
        """Return the same with P and Q exchanged."""
        return Cells(self.size, self.q, self.p)


@lru_cache(maxsize=256)
def moment_bounds_of(loss: PrivacyLoss) -> MomentBounds:
    """Return proven enclosures for one run of a loss, some 1e-3 wide relative to themselves.

    Raises:
        NoAnalysisError: If none are known.
    """
    return _bounds(loss)


@singledispatch
def _bounds(loss: PrivacyLoss) -> MomentBounds:
    """Return the enclosures of a kind of loss."""
    raise NoAnalysisError(f"no bounds of the moments of a {type(loss).__name__} are known")


@_bounds.register
def _(loss: GaussianLoss) -> MomentBounds:
    # A normal loss is the sum of k equal normal ones, whose third moments vanish as k grows; the
    # theorem of Berry and Esseen holds for each k, and so with 0 here.
    if loss.out_of_range:
        raise NoAnalysisError("the noise is out of reach")
    square = loss.mu * loss.mu
    low, high = square * (1.0 - 16.0 * ULP), square * (1.0 + 16.0 * ULP)
    return MomentBounds(
        LawBounds(0.5 * low, 0.5 * high, low, high, 0.0),
        LawBounds(-0.5 * high, -0.5 * low, low, high, 0.0),
    )


@_bounds.register
def _(loss: SampledGaussianLoss) -> MomentBounds:
    if loss.out_of_range:
        raise NoAnalysisError("the rate or the noise are out of reach of the quadrature")
    p, mu = float(loss.rate), loss.mu
    left, right = _left(p, mu), _right(p, mu)
    if loss.removing:
        return of_cells(right, left, _of_normals(mu))
    return of_cells(left.swapped(), right.swapped(), _of_normals(mu))


@_bounds.register
def _(loss: FixedSizeGaussianLoss) -> MomentBounds:
    if loss.out_of_range:
        raise NoAnalysisError("the rate or the noise are out of reach of the quadrature")
    right = _right(float(loss.rate), loss.mu)
    # Readings of the rate move 1 - p by an ulp of p.
    slack = _OUTWARD * loss.atom + 2.0 * ULP
    none = max(loss.atom - slack, 0.0), loss.atom + slack
    return of_cells(right, right.swapped(), _of_normals(loss.mu), none)


@_bounds.register
def _(loss: CellLoss) -> MomentBounds:
    from hockeystick.privacy_loss.bounds.interval_moments import bounds_of

    return bounds_of(loss)


@_bounds.register
def _(loss: RandomizedResponsePairLoss) -> MomentBounds:
    if loss.failure > 0.0:
        raise NoAnalysisError("a loss that may be infinite has no moments")
    if not _SMALLEST <= loss.epsilon <= _LARGEST:
        raise NoAnalysisError("epsilon is out of reach of its third moment in floats")
    e, mean, rest = loss.epsilon, math.tanh(0.5 * loss.epsilon), unlikely(loss.epsilon)
    less, more = 1.0 - 32.0 * ULP * (1.0 + e), 1.0 + 32.0 * ULP * (1.0 + e)
    law = LawBounds(
        mean_lower=e * mean * less,
        mean_upper=e * mean * more,
        variance_lower=rest * e * e * less,
        variance_upper=rest * e * e * more,
        third_upper=rest * (1.0 + mean * mean) * e**3 * more,
    )
    mirrored = law._replace(mean_lower=-law.mean_upper, mean_upper=-law.mean_lower)
    return MomentBounds(law, mirrored)


def _of_normals(mu: float) -> Beyond:
    """Return what lies beyond the cells of the output."""
    return lambda power, offset: float(
        4.0 * _REST * (1.0 + 0.5 * mu * mu + offset + 20.0 * mu) ** power
    )


def of_cells(
    above: Cells, below: Cells, beyond: Beyond, none: tuple[float, float] = (0.0, 0.0)
) -> MomentBounds:
    """Return the enclosures given the positive losses, the negative ones and the mass at 0."""
    near, far = _evaluated(above.size), _evaluated(below.size)
    rest = beyond(1, 0.0)
    mean_p = _total([(above.p, near[0]), (below.q, far[1])], rest)
    mean_q = _total([(above.p, near[1]), (below.q, far[0])], rest)
    return MomentBounds(
        _law((above.size, above.p), (below.size, below.p), none, mean_p, beyond),
        _law((above.size, above.q), (below.size, below.q), none, (-mean_q[1], -mean_q[0]), beyond),
    )


def _evaluated(size: Range) -> tuple[Range, Range]:
    """Return ``k`` and ``l`` over each cell: they increase."""
    low, high = fall(size.low), fall(size.high)
    return Range(low[0], high[0]), Range(low[1], high[1])


def _law(
    above: tuple[Range, Range],
    below: tuple[Range, Range],
    none: tuple[float, float],
    mean: tuple[float, float],
    beyond: Beyond,
) -> LawBounds:
    """Return the enclosures under one distribution, from sizes and masses and the mean."""
    import numpy as np

    centre = 0.5 * (mean[0] + mean[1])
    radius = 1.000001 * (0.5 * (mean[1] - mean[0]) + 4.0 * ULP * abs(centre))
    zero = np.zeros(1)
    at_zero = (Range(zero, zero), Range(zero + none[0], zero + none[1]))
    parts = [
        (above[1], _distance(above[0].low, above[0].high, centre)),
        (below[1], _distance(-below[0].high, -below[0].low, centre)),
        (at_zero[1], _distance(zero, zero, centre)),
    ]
    offset = abs(centre) + radius
    squares = _total([(w, _power(d, 2)) for w, d in parts], beyond(2, offset))
    cubes = [(w, _power(Range(d.low, d.high + radius), 3)) for w, d in parts]
    third = _total(cubes, beyond(3, offset))[1]
    variance = max(squares[0] - radius * radius * (1.0 + _OUTWARD), 0.0)
    return LawBounds(*mean, variance, squares[1], third)


def _distance(low: Array, high: Array, centre: float) -> Range:
    """Return how far a loss between two ends is from a point, at least and at most."""
    import numpy as np

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
    return low * (1.0 - _OUTWARD), high * (1.0 + _OUTWARD) + rest


def _right(p: float, mu: float) -> Cells:
    """Return the outputs at which the mixture is the more likely one; P is the mixture."""
    return _cells(p, mu, [0.5 * mu, mu + _WIDE, mu + _END], 1.0)


def _left(p: float, mu: float) -> Cells:
    """Return the outputs at which the mixture is the less likely one; P is the mixture."""
    return _cells(p, mu, [0.5 * mu, -_WIDE, -_END, -math.inf], -1.0)


def _cells(p: float, mu: float, ends: list[float], sign: float) -> Cells:
    """Return cells that walk away from ``u = mu/2``, where the loss is 0, through the ends."""
    import numpy as np

    u = np.concatenate(
        [
            np.linspace(ends[0], ends[1], _NARROW_CELLS + 1),
            np.linspace(ends[1], ends[2], _WIDE_CELLS + 1)[1:],
            ends[3:],
        ]
    )
    size, error = _sizes(p, mu, u, sign)
    # The cells begin where the loss is 0, exactly; it grows from there.
    size[0] = error[0] = 0.0
    sizes = Range(np.maximum(size - error, 0.0)[:-1], (size + error)[1:])
    bare, shifted = _masses(u, 0.0, mu, sign), _masses(u, mu, mu, sign)
    ulps = 4.0 * ULP
    mixture = Range(
        max(1.0 - p - ulps, 0.0) * bare.low + p * (1.0 - ulps) * shifted.low,
        (1.0 - p + ulps) * bare.high + p * (1.0 + ulps) * shifted.high,
    )
    return Cells(sizes, mixture, bare)


def _sizes(p: float, mu: float, u: Array, sign: float) -> tuple[Array, Array]:
    """Return ``|ln r|`` and a bound on its error over every reading of the parameters.

    ``d ln r / d t = s``, the odds of having been sampled, and ``d ln r / d ln p = 1 - 1/r``.
    """
    import numpy as np

    v = np.maximum(u, -1e3)
    size = np.where(np.isinf(u), -math.log1p(-p), sign * log_ratio(p, mu, v))
    ratio = sign * size
    odds = np.where(np.isinf(u), 0.0, np.exp(math.log(p) + mu * v - 0.5 * mu * mu - ratio))
    pull = np.abs(np.expm1(-ratio))
    reach = mu * np.abs(v) + mu * mu + abs(math.log(p)) * (ratio > 0.0)
    return size, ULP * (16.0 * odds * reach + 16.0 * pull + 16.0 * np.abs(size))


def _masses(u: Array, shift: float, mu: float, sign: float) -> Range:
    """Return bounds of the masses of N(shift, 1) between neighbouring points.

    A density is at most ``1 + |v|`` times the smaller tail, which covers arguments that move: those
    of the first point, by ulps of mu, and all of a shifted normal.
    """
    import numpy as np
    from scipy.special import ndtr

    v = u - shift
    first, last = (v[:-1], v[1:]) if sign > 0.0 else (v[1:], v[:-1])
    flip = np.where(first + last > 0.0, -1.0, 1.0)
    tails = ndtr(flip * first), ndtr(flip * last)
    size = np.where(np.isinf(v), 0.0, np.abs(v))
    errors = ULP * (64.0 + 4.0 * (1.0 + size) * (size + abs(shift) + mu))
    error = np.maximum(errors[:-1], errors[1:]) * (tails[0] + tails[1])
    mass = flip * (tails[1] - tails[0])
    return Range(np.maximum(mass - error, 0.0), np.maximum(mass, 0.0) + error)
