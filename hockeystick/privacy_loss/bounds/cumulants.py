"""The first four cumulants of a loss, under P and under Q: what expansions about the normal use.

Fast and unproven; ``_moment_bounds`` has enclosures. The mean of a small loss is of second order in
it, so it is never a difference: with ``L = ln dP/dQ`` and ``k(y) = e^-y - 1 + y``,
``l(y) = e^-y (e^y - 1 - y)``, both >= 0 for ``y >= 0``,

     E_P[L] = E_P[k(L); L > 0] + E_Q[l(-L); L < 0],
    -E_Q[L] = E_P[l(L); L > 0] + E_Q[k(-L); L < 0].

These are ``E_P[e^-L - 1 + L]`` and ``E_Q[e^L - 1 - L]``, as ``E_P[e^-L] = 1 = E_Q[e^L]``, with the
measure changed where an exponential would grow.
"""

from __future__ import annotations

import math
from functools import singledispatch
from typing import TYPE_CHECKING, Final, NamedTuple

from hockeystick.privacy_loss.core.base import PrivacyLoss
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.registry import NoAnalysisError
from hockeystick.privacy_loss.guarantees.two_point import RandomizedResponsePairLoss
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss
from hockeystick.privacy_loss.sampling.fixed_size_gaussian import FixedSizeGaussianLoss
from hockeystick.privacy_loss.sampling.sampled_gaussian import SampledGaussianLoss

if TYPE_CHECKING:
    from hockeystick.kernels.series import Array

# Standard deviations beyond which nothing counts, and nodes on each panel.
_REACH: Final = 14.0
_LEAST_EPSILON: Final = 1e-70
_LARGEST_EPSILON: Final = 1e70
_NODES: Final = 20


class FourCumulants(NamedTuple):
    """Mean, variance, and the third and fourth cumulants."""

    mean: float
    variance: float
    third: float
    fourth: float


class Moments(NamedTuple):
    """The cumulants of a loss under each of its two distributions."""

    under_p: FourCumulants
    under_q: FourCumulants


class Half(NamedTuple):
    """Where the loss has one sign: its size, and the weights under P and under Q."""

    size: Array
    p: Array
    q: Array


@singledispatch
def moments_of(loss: PrivacyLoss) -> Moments:
    """Return the first four cumulants of one run's loss under P and under Q.

    They have some 12 digits, the fourth next to the square of the variance; those that come from
    cells have some 6.

    Raises:
        NoAnalysisError: If they are not known.
    """
    raise NoAnalysisError(f"the cumulants of a {type(loss).__name__} are not known")


@moments_of.register
def _(loss: GaussianLoss) -> Moments:
    square = loss.mu * loss.mu
    return Moments(
        FourCumulants(0.5 * square, square, 0.0, 0.0),
        FourCumulants(-0.5 * square, square, 0.0, 0.0),
    )


@moments_of.register
def _(loss: SampledGaussianLoss) -> Moments:
    if loss.out_of_range:
        raise NoAnalysisError("the rate or the noise are out of reach of the quadrature")
    p, mu = float(loss.rate), loss.mu
    left, right = _left(p, mu), _right(p, mu)
    if loss.removing:
        return _of_halves(right, left)
    return _of_halves(_swapped(left), _swapped(right))


@moments_of.register
def _(loss: FixedSizeGaussianLoss) -> Moments:
    if loss.out_of_range:
        raise NoAnalysisError("the rate or the noise are out of reach of the quadrature")
    right = _right(float(loss.rate), loss.mu)
    return _of_halves(right, _swapped(right), loss.atom)


@moments_of.register
def _(loss: RandomizedResponsePairLoss) -> Moments:
    if loss.failure > 0.0:
        raise NoAnalysisError("a loss that may be infinite has no cumulants")
    if not _LEAST_EPSILON <= loss.epsilon <= _LARGEST_EPSILON:
        raise NoAnalysisError("the cumulants of so small or so large an epsilon leave the floats")
    e, mean, rest = loss.epsilon, math.tanh(0.5 * loss.epsilon), unlikely(loss.epsilon)
    third = 2.0 * mean * rest * e**3
    fourth = -2.0 * rest * (1.0 - 3.0 * mean * mean) * e**4
    return Moments(
        FourCumulants(e * mean, rest * e * e, -third, fourth),
        FourCumulants(-e * mean, rest * e * e, third, fourth),
    )


@moments_of.register
def _(loss: CellLoss) -> Moments:
    from hockeystick.privacy_loss.bounds.interval_moments import halves_of

    return _of_halves(*halves_of(loss))


def unlikely(epsilon: float) -> float:
    """Return ``1 - tanh(eps/2)^2``, four times the product of a two-point loss's masses."""
    small = math.exp(-epsilon)
    return 4.0 * small / (1.0 + small) ** 2


def _of_halves(above: Half, below: Half, none: float = 0.0) -> Moments:
    """Return the cumulants given the positive losses, the negative ones and the mass at 0."""
    near, far = fall(above.size), fall(below.size)
    mean_p = float((above.p * near[0]).sum() + (below.q * far[1]).sum())
    mean_q = float((above.p * near[1]).sum() + (below.q * far[0]).sum())
    under_p = _cumulants((above.size, above.p), (below.size, below.p), none, mean_p)
    under_q = _cumulants((above.size, above.q), (below.size, below.q), none, -mean_q)
    return Moments(under_p, under_q)


def fall(size: Array) -> tuple[Array, Array]:
    """Return ``k`` and ``l`` of the module's text, to full relative precision, for y >= 0.

    They increase with y; beyond 0.5 nothing cancels, and below it the series of e^y does not.
    """
    import numpy as np

    small = np.minimum(size, 0.5)
    plus, minus = np.ones_like(small), np.ones_like(small)
    for order in range(20, 2, -1):
        plus, minus = 1.0 + small / order * plus, 1.0 - small / order * minus
    square = 0.5 * small * small
    is_small = size <= 0.5
    k = np.where(is_small, square * minus, np.expm1(-size) + size)
    rest = -np.expm1(-size) - size * np.exp(-size)
    return k, np.where(is_small, np.exp(-small) * square * plus, rest)


def log_ratio(p: float, mu: float, u: Array) -> Array:
    """Return ``ln(1 - p + p exp(mu u - mu^2/2))``."""
    import numpy as np

    t = mu * u - 0.5 * mu * mu
    small = np.log1p(p * np.expm1(np.minimum(t, 30.0)))
    large = t + np.log(p + (1.0 - p) * np.exp(-np.maximum(t, 30.0)))
    return np.where(t > 30.0, large, small)


def _cumulants(
    above: tuple[Array, Array], below: tuple[Array, Array], none: float, mean: float
) -> FourCumulants:
    """Return the cumulants of sizes and their weights about a mean that is known."""
    up, down = above[0] - mean, -below[0] - mean
    second, third, fourth = (
        float((above[1] * up**k).sum() + (below[1] * down**k).sum()) + none * (-mean) ** k
        for k in (2, 3, 4)
    )
    return FourCumulants(mean, second, third, fourth - 3.0 * second * second)


def _right(p: float, mu: float) -> Half:
    """Return the outputs at which the mixture is the more likely one; P is the mixture."""
    # The fourth power of a loss below 1 tilts the density by 5 mu; larger losses do not tilt it.
    furthest = max(mu, min(5.0 * mu, 0.5 * mu - math.log(p) / mu))
    return _half(p, mu, 0.5 * mu, furthest + _REACH, 1.0)


def _left(p: float, mu: float) -> Half:
    """Return the outputs at which the mixture is the less likely one; P is the mixture."""
    return _half(p, mu, -_REACH, 0.5 * mu, -1.0)


def _half(p: float, mu: float, low: float, high: float, sign: float) -> Half:
    """Return Gauss-Legendre nodes between two outputs on panels that resolve ``ln r``."""
    import numpy as np

    panels = math.ceil((high - low) * max(mu, 1.0))
    edges = np.linspace(low, high, panels + 1)
    x, w = np.polynomial.legendre.leggauss(_NODES)
    half = 0.5 * np.diff(edges)[:, None]
    u = (edges[:-1, None] + half * (1.0 + x)).ravel()
    weight = (half * w).ravel() / math.sqrt(2.0 * math.pi)
    bare, shifted = weight * np.exp(-0.5 * u * u), weight * np.exp(-0.5 * (u - mu) ** 2)
    size = np.maximum(sign * log_ratio(p, mu, u), 0.0)
    return Half(size, (1.0 - p) * bare + p * shifted, bare)


def _swapped(half: Half) -> Half:
    """Return the same with P and Q exchanged."""
    return Half(half.size, half.q, half.p)
