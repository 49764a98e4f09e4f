"""The dominating pair of comparisons with a noisy threshold, by shifts of its noise.

Let the threshold's noise r, with density p, be r + v for the neighbour, for some v in [0, 1]. Given
r, the largest divergence V of a run (``threshold_run``) bounds that of the release by

    D_v(x) = E[V(x p(r + v) / p(r))] = D_A(x) + E[Z(x e^-l)],

A the pair of the noise and the shifted noise, D_A its profile and l its loss. In units of the
sensitivity, a query's answer moves by d in [-1, 1], so that its distance to the threshold changes
by ``v - d``, and the logarithms of both outcomes' probabilities by at most ``1/b`` times that:

    s+ = (1 + v)/b,  s- = (1 - v)/b.

At v = 1 the loss is bounded, at v = 0 the threshold's noise reveals nothing. As D_v holds in either
order of the two data sets, the release's profile H is at most each D_v and its reflection
``1 - x + x D_v(1/x)``.

Where all answers move the same way, d is in [0, 1] for one order, with ``s+ = v/b`` and
``s- = (1 - v)/b``, and the other order has the reflections. H is at most the larger of the convex
hulls of the least D_v and of its reflection, a convex function again.

H is convex: it lies below the chords between upper bounds at any points, and the lower convex hull
of these is the profile of a pair, with atoms at the points. It is found in exact arithmetic.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from hockeystick.numerics import ULP
from hockeystick.numerics.multiprecision import mp, mpf, working_digits
from hockeystick.numerics.rounding import as_mpf, float_up
from hockeystick.privacy_loss.core.atomic import AtomicLoss
from hockeystick.privacy_loss.core.base import Array
from hockeystick.privacy_loss.core.composition import mu_of
from hockeystick.privacy_loss.core.mixtures import RandomizedResponsePairLoss
from hockeystick.privacy_loss.core.outcomes import OutcomesLoss
from hockeystick.privacy_loss.guarantees import Points, lower_hull
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss
from hockeystick.privacy_loss.selection.above_threshold import (
    AboveThresholdGaussianLoss,
    RunProfile,
    gaussian_run,
    run_profile,
    tail,
)

# Shifts are multiples of a sensitivity over this.
_SHARES: Final = 8
# Points of equal distance up to the largest loss; points up to so many query scales, and how many.
_EQUAL: Final = 160
_SCALES: Final = 24
_PER_SCALE: Final = 4
# Cells of the threshold's loss, and how many deviations these reach to either side.
_CELLS: Final = 64
_GAUSSIAN_CELLS: Final = 960
_REACH: Final = 24.0
# From so many deviations on the loss is Gaussian.
_TAIL: Final = 10.0
_DIGITS: Final = 60
_BITS: Final = 240
# Losses above this, or those of Gaussian noise of a larger mu, are counted as a pure guarantee.
_LARGEST_LOSS: Final = 3000.0
_LARGEST_MU: Final = 20.0
# With Gaussian query noise: the most queries, the largest mu, and the shares of shifts.
_MOST_QUERIES: Final = 2000
_LARGEST_GAUSSIAN_MU: Final = 3.0
_GAUSSIAN_SHARES: Final = (0, 4, 6, 7, 8)
_FEW_QUERIES: Final = 100
_SHARES_OF_MANY: Final = (6, 7)
_FAR_TAIL: Final = 20.0
_FAR_POINTS: Final = 300


class LossAtoms(NamedTuple):
    """Losses and their probabilities under P, of a pair that dominates the threshold's."""

    loss: Array
    mass: Array


_NO_NOISE: Final = LossAtoms(np.zeros(1), np.ones(1))


@lru_cache(maxsize=256)
def laplace_bound(threshold: float, query: float, monotone: bool) -> AtomicLoss:
    """Return the pair for Laplace noise, by the reciprocals of both scales, rounded up."""
    step = (1.0 if monotone else 2.0) * query
    largest = float_up(Fraction(step) + Fraction(threshold))
    if largest > _LARGEST_LOSS:
        return RandomizedResponsePairLoss(largest)
    kinks = np.arange(2, -_SCALES, -1)[:, None] * step + np.array([-threshold, threshold])
    at = _points(np.abs(kinks).ravel(), query, largest)
    noises = [laplace_atoms(threshold * (share / _SHARES)) for share in range(_SHARES + 1)]
    bound = _least_excess(at, noises, query, monotone)
    # Nothing is above the largest loss.
    bound[0] = bound[-1] = 0.0
    return _outcomes(lower_hull(_symmetric(*_both_orders(at, bound, monotone))))


@lru_cache(maxsize=256)
def gaussian_bound(
    noise_multiplier: Fraction, query: float, monotone: bool
) -> AboveThresholdGaussianLoss:
    """Return the pair for a Gaussian threshold, by the reciprocal of the scale of Laplace noise."""
    mu, step = mu_of(noise_multiplier), (1.0 if monotone else 2.0) * query
    inner = step + mu * (0.5 * mu + _TAIL)
    if inner > _LARGEST_LOSS or mu > _LARGEST_MU:
        pure = RandomizedResponsePairLoss(inner)
        return AboveThresholdGaussianLoss(noise_multiplier, step, inner, pure)
    at = _points(np.zeros(0), query, inner)
    noises = [_gaussian_noise(noise_multiplier, share) for share in range(_SHARES + 1)]
    bound = _least_excess(at, noises, query, monotone)
    return _tailed(noise_multiplier, step, inner, _both_orders(at, bound, monotone))


@lru_cache(maxsize=256)
def gaussian_queries_bound(
    noise_multiplier: Fraction | None, query: float, monotone: bool, queries: int
) -> AboveThresholdGaussianLoss | None:
    """Return the pair for Gaussian noise of both; None for one query, very many, or little noise.

    An "above" at the i-th query has at most the divergence of the Gaussian release of the noise of
    the threshold and of that query, of ``mu^2 = 1/b_threshold^2 + (s+)^2``: for ``x >= 1`` the
    whole release has at most N times as much, which for large x is less than that of a Gaussian
    loss plus some s. ``ln D`` is concave in epsilon, so that this holds from a point on.
    The release of all N noisy answers, of ``mu^2 = N/b^2``, serves where that is less.
    """
    step = (1.0 if monotone else 2.0) * query
    own = mu_of(noise_multiplier) if noise_multiplier else 0.0
    mu = math.hypot(own, step) * (1.0 + 4.0 * ULP)
    if not 1 < queries <= _MOST_QUERIES or mu > _LARGEST_GAUSSIAN_MU:
        return None
    times = queries
    if queries * query * query < mu * mu:
        mu, times = math.sqrt(queries) * query * (1.0 + 4.0 * ULP), 1
    shift = mu * (math.log(times) + 0.01) / (_FAR_TAIL - 2.0)
    inner = shift + mu * (0.5 * mu + _FAR_TAIL)
    both = 1 / Fraction(mu)
    with working_digits(_DIGITS):
        far = as_mpf(_growth(np.array([inner]))[0])
        (p, q), (own_p, own_q) = tail(both, shift, inner), tail(both, 0.0, inner)
        if not p - far * q > times * (own_p - far * own_q):
            return None
    at = _points(np.linspace(0.0, inner, _FAR_POINTS), query, inner)
    least = np.full(at.size, math.inf)
    for share in _GAUSSIAN_SHARES if queries <= _FEW_QUERIES else _SHARES_OF_MANY:
        part = share / _SHARES
        signs = (part if monotone else 1.0 + part), 1.0 - part
        run = gaussian_run(signs[0] * query, signs[1] * query, queries)
        least = np.minimum(least, excess(at, _gaussian_noise(noise_multiplier, share), run))
    gaussian = gaussian_atoms(both)
    less = np.minimum(np.abs(at)[:, None] * (1.0 - 4.0 * ULP) - gaussian.loss, 0.0)
    each = (-np.expm1(less) @ gaussian.mass) * np.exp(np.minimum(at, 0.0))
    least = np.minimum(least, times * each * (1.0 + 2.0**-44))
    return _tailed(both, shift, inner, _both_orders(at, least, monotone))


def _gaussian_noise(noise_multiplier: Fraction | None, share: int) -> LossAtoms:
    if noise_multiplier is None or not share:
        return _NO_NOISE
    return gaussian_atoms(noise_multiplier * _SHARES / share)


def _tailed(
    noise_multiplier: Fraction,
    shift: float,
    inner: float,
    bounds: tuple[list[Fraction], Fraction, list[Fraction]],
) -> AboveThresholdGaussianLoss:
    x, middle, above = bounds
    with working_digits(_DIGITS):
        p, q = (_rounded(one) for one in tail(noise_multiplier, shift, inner))
    rest = 1 - p - q
    tails = [p - q * point for point in x]
    within = [max((z - own) / rest, Fraction(0)) for z, own in zip(above, tails, strict=True)]
    x = [*x, _growth(np.array([inner * (1.0 + 2.0**-20)]))[0]]
    points = _symmetric(x, (middle - p + q) / rest, [*within, Fraction(0)])
    return AboveThresholdGaussianLoss(noise_multiplier, shift, inner, _outcomes(lower_hull(points)))


def _points(found: Array, query: float, largest: float) -> Array:
    """Return the logarithms of the points, ascending, 0 in the middle."""
    near = np.arange(1, _SCALES * _PER_SCALE + 1) * (query / _PER_SCALE)
    equal = np.arange(1, _EQUAL) * (largest / _EQUAL)
    found = np.unique(np.concatenate((found, near, equal)))
    found = found[(found > 1e-9 * largest) & (found < largest * (1.0 - 1e-9))]
    kept = found[np.concatenate(([True], np.diff(found) > 1e-9 * largest))]
    half = np.append(kept, largest)
    return np.concatenate((-half[::-1], [0.0], half))


def _least_excess(at: Array, noises: list[LossAtoms], query: float, monotone: bool) -> Array:
    """Return upper bounds of the least ``D_v(e^at) - (1 - e^at)_+``."""
    unit, least = query / _SHARES, np.full(at.size, math.inf)
    for share, noise in enumerate(noises):
        plus = share if monotone else _SHARES + share
        run = run_profile(unit, plus, _SHARES - share)
        if run is not None:
            least = np.minimum(least, excess(at, noise, run))
    return least


def laplace_atoms(largest: float) -> LossAtoms:
    """Return atoms that dominate a Laplace loss, its probability in each cell kept under P and Q.

    In a cell of the width w around m, ``exp((m - e)/2) 2 sinh(w/4)^2 e^(w/4) / (1 - e^-w)`` goes
    to the upper end, as much as from there to the lower end of the mirrored cell.
    """
    if largest == 0.0:
        return _NO_NOISE
    edges = np.linspace(-largest, largest, _CELLS + 1)
    width = 2.0 * largest / _CELLS
    share = 2.0 * math.sinh(0.25 * width) ** 2 / -math.expm1(-width)
    up = share * np.exp(0.5 * (edges[:-1] - largest))
    # To the lower end l go ``e^l`` times what the mirrored cell sends to -l.
    down = share * np.exp(edges[:-1] - 0.5 * (edges[1:] + largest))
    mass = np.zeros(edges.size)
    mass[1:] += up
    mass[:-1] += down
    mass[-1] += 0.5
    mass[0] += 0.5 * math.exp(-largest)
    return LossAtoms(edges, mass * (1.0 + ULP * (64.0 + 4.0 * largest)))


@lru_cache(maxsize=256)
def gaussian_atoms(noise_multiplier: Fraction) -> LossAtoms:
    """Return atoms that dominate a Gaussian loss, each cell's probabilities kept under P and Q.

    What is beyond all cells counts as an infinite loss.
    """
    mu = mu_of(noise_multiplier)
    edges = 0.5 * mu * mu + mu * np.linspace(-_REACH, _REACH, _GAUSSIAN_CELLS + 1)
    masses = GaussianLoss(noise_multiplier).cells(np.concatenate(([-math.inf], edges, [math.inf])))
    p, q = np.exp(masses.log_p), np.exp(masses.log_q)
    error = masses.error + ULP * (8.0 + np.abs(masses.log_p) + np.abs(masses.log_q))
    low, width = edges[:-1], np.diff(edges)
    # ``p - q e^low`` goes to the upper end, in all ``1 - e^-width`` times what lands there.
    other = q[1:-1] * np.exp(low)
    lost = (p[1:-1] + other) * (error[1:-1] + ULP * (8.0 + 4.0 * np.abs(low))) * 2.0
    share = -np.expm1(-width)
    up = (np.maximum(p[1:-1] - other, 0.0) + lost) / share
    down = (np.maximum(other - p[1:-1] * np.exp(-width), 0.0) + lost) / share
    mass = np.zeros(edges.size + 1)
    mass[1:-1] += up
    mass[:-2] += down
    mass[-1] = (p[0] + p[-1]) * 1.001
    return LossAtoms(np.append(edges, math.inf), mass * (1.0 + 64.0 * ULP))


def excess(at: Array, noise: LossAtoms, run: RunProfile) -> Array:
    """Return upper bounds of ``D(e^at) - (1 - e^at)_+`` for the noise's loss and that of a run."""
    # The noise's pair is its own mirror image.
    less = np.minimum(np.abs(at)[:, None] * (1.0 - 4.0 * ULP) - noise.loss, 0.0)
    own = (-np.expm1(less) @ noise.mass) * np.exp(np.minimum(at, 0.0))
    # At an infinite loss Z is at most the largest one, which it is at 1.
    left = np.where(np.isfinite(noise.loss), at[:, None] - noise.loss, 0.0)
    after = run.at(left) @ noise.mass
    return np.asarray((own + after) * (1.0 + 2.0**-44))


def _growth(at: Array) -> list[Fraction]:
    """Return about ``e^at``, at least."""
    with working_digits(_DIGITS):
        grown = [mp.exp(mp.mpf(float(one))) * (1 + mp.mpf(2) ** (2 - mp.prec)) for one in at]
        return [Fraction(int(mp.ceil(mp.ldexp(one, _BITS))), 1 << _BITS) for one in grown]


def _rounded(value: mpf) -> Fraction:
    return Fraction(int(mp.nint(mp.ldexp(value, _BITS))), 1 << _BITS)


def _both_orders(
    at: Array, bound: Array, monotone: bool
) -> tuple[list[Fraction], Fraction, list[Fraction]]:
    """Return points x above 1, and bounds of Z at 1 and at x that hold in both orders."""
    half = at.size // 2
    exact = [Fraction(one) for one in bound.tolist()]
    x, below, middle, above = _growth(at[half + 1 :]), exact[:half], exact[half], exact[half + 1 :]
    below.reverse()
    mirrored = [one * other for one, other in zip(x, below, strict=True)]
    if not monotone:
        return x, middle, [min(one, other) for one, other in zip(above, mirrored, strict=True)]
    points = _points_of(x, middle, above, below)
    values = _values(lower_hull(points), [point for point, _ in points])
    larger = []
    for k, one in enumerate(x, 1):
        up, down = values[half + k], values[half - k]
        larger.append(max(up, one * down - (one - 1)))
    return x, values[half], larger


def _symmetric(x: list[Fraction], middle: Fraction, above: list[Fraction]) -> Points:
    return _points_of(x, middle, above, [z / one for one, z in zip(x, above, strict=True)])


def _points_of(
    x: list[Fraction], middle: Fraction, above: list[Fraction], below: list[Fraction]
) -> Points:
    """Return points of a profile, ascending, from Z at x, at 1 and at the reciprocals of x."""
    low = [(1 / one, 1 - 1 / one + z) for one, z in zip(x, below, strict=True)]
    return [*reversed(low), (Fraction(1), middle), *zip(x, above, strict=True)]


def _values(hull: Points, at: list[Fraction]) -> list[Fraction]:
    """Return the values of a hull at points, ascending, from its first corner to its last."""
    found, k = [], 0
    for x in at:
        while k < len(hull) - 2 and x > hull[k + 1][0]:
            k += 1
        (first, low), (second, high) = hull[k : k + 2]
        found.append(low + (high - low) * (x - first) / (second - first))
    return found


def _outcomes(hull: Points) -> OutcomesLoss:
    """Return the pair whose profile a hull is: Q's masses are the changes of its slope."""
    between = [(y - low) / (x - first) for (first, low), (x, y) in pairwise(hull)]
    slopes = [Fraction(-1), *between, Fraction(0)]
    corners = zip(hull, pairwise(slopes), strict=True)
    masses = [(x * (after - before), after - before) for (x, _), (before, after) in corners]
    return OutcomesLoss(tuple(one for one in masses if one[1] > 0))
