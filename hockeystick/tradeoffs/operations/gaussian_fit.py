"""The Gaussian trade-off function below a symmetric f at all rates that matter, and its regret.

With ``P = 1 - f(alpha)`` the Gaussian curve through a point has ``mu = Phi^-1(P) - Phi^-1(alpha)``.
f lies above the lines ``1 - delta(eps) - e^eps alpha``, and ``G_mu`` is convex: where it is below a
line at both ends of an interval of rates, it is below it in between. So the largest mu at the
corners of a polygon below f is an upper end, and the mu of each point of f a lower one.

In ``v = alpha + P`` and ``w = P - alpha`` a curve is the concave function

    w(v) = inf over eps >= 0 of tanh(eps / 2) v + 2 delta(eps) / (1 + e^eps),    0 <= v <= 1,

and moving f by kappa down and to the left moves it by 2 kappa up: the regret is half the largest
difference of the two functions.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from hockeystick.numerics import ULP
from hockeystick.tradeoffs.base import Bounds, TradeOff
from hockeystick.tradeoffs.functions.closed_forms import GaussianTradeOff
from hockeystick.tradeoffs.functions.piecewise import lower_envelope
from hockeystick.tradeoffs.profiles.profile import Array, Flags, Profile

# The number of lines to begin with, the most, and the number of rounds of refinement.
_LINES: Final = 65
_MOST_LINES: Final = 6000
_ROUNDS: Final = 24
# The relative width of mu, and the relative and absolute ones of the regret, that are aimed for.
_NARROW: Final = 1e-8
_NARROW_REGRET: Final = 1e-5
_LEAST_REGRET: Final = 1e-9
# The points of f of which lower ends are computed in each round.
_POINTS: Final = 4
_FIRST_EPSILON: Final = 2.0**-12
_LAST_EPSILON: Final = 700.0
# What a Gaussian's mu is rounded up by, relatively, other readings of its noise included.
_ROUNDED_MU: Final = 2.0**-48
# The regret needs points of f from this rate on, and up to these deviations.
_FIRST_RATE: Final = 1e-10
_DEVIATIONS: Final = 6.0
# The points of G_mu between which its lines are looked up, and how far they reach.
_GAUSSIAN_POINTS: Final = 4097
_FARTHEST: Final = 9.0
# The number of rounds of narrowing down the best line.
_SEARCHES: Final = 8


class _Lines(NamedTuple):
    """Lines below f, one for each epsilon, ascending: upper ends of delta and of e^epsilon."""

    epsilon: Array
    delta: Array
    slope: Array

    @staticmethod
    def of(profile: Profile, epsilon: Array) -> _Lines:
        upper = np.minimum(profile.at(epsilon).upper, 1.0)
        return _Lines(epsilon, upper, np.exp(epsilon) * (1.0 + 4.0 * ULP)).needed()

    def power(self, rates: Array) -> Array:
        """Return upper ends of the power, of each line at the rate of its place."""
        return np.asarray((self.delta + self.slope * rates) * (1.0 + 4.0 * ULP))

    def refined(self, profile: Profile, lines: Flags) -> _Lines:
        """Return the lines with one more on either side of each of these."""
        gaps = lines[1:] | lines[:-1]
        added = _Lines.of(profile, 0.5 * (self.epsilon[1:] + self.epsilon[:-1])[gaps])
        together = (np.r_[own, new] for own, new in zip(self, added, strict=True))
        return _Lines(*together).needed()

    def needed(self) -> _Lines:
        """Return the lines that are the highest somewhere: those of the convex envelope."""
        order = np.lexsort((self.delta, self.slope))
        kept = np.array(lower_envelope(np.c_[self.slope, self.delta].tolist()))[:, 0]
        return _Lines(*(one[order][np.searchsorted(self.slope[order], kept)] for one in self))


def least_mu(f: TradeOff, least_rate: float) -> Bounds:
    """Return the least mu with ``G_mu <= f`` wherever both error rates are at least this.

    It is the supremum of ``Phi^-1(1 - f(alpha)) - Phi^-1(alpha)`` over the rates alpha with
    ``alpha >= least_rate`` and ``f(alpha) >= least_rate``, and infinite where there are none. f is
    symmetric, and the least rate in (0, 1/2).
    """
    if isinstance(f, GaussianTradeOff) and f(least_rate) >= least_rate:
        return Bounds(f.mu * (1.0 - _ROUNDED_MU), f.mu)
    if f.forward.supremum == 0.0:
        return Bounds(0.0, 0.0)
    lower, _, upper = f.forward.precisely(0.0)
    # f has slope -1 and its fixed point at (1 - delta(0)) / 2.
    most = 0.5 * (1.0 - upper) * (1.0 - ULP)
    if 0.5 * (1.0 - lower) * (1.0 + 2.0 * ULP) < least_rate:
        return Bounds(math.inf, math.inf)
    if not most > least_rate:
        return Bounds(0.0, math.inf)
    return _search_mu(f, least_rate, most)


def _search_mu(f: TradeOff, least: float, most: float) -> Bounds:
    """Return both ends of the largest mu at rates from the least to the fixed point."""
    profile = f.forward
    lines = _Lines.of(profile, _first_epsilons(profile, least))
    lower, upper = 0.0, math.inf
    # From the rate ``most`` to the fixed point both error rates are at least that.
    at_most = float(_mu_above(np.array([most]), np.array([1.0 - most]))[0])
    for _ in range(_ROUNDS):
        mus, rates = _mus_of_corners(lines, least, most)
        upper = min(upper, max(float(mus.max()), at_most))
        worst = rates[np.argsort(mus)[-_POINTS:]]
        worst = np.r_[worst, least]
        lower = max(lower, float(_mu(worst, f.power_bounds(worst)[0], -1.0).max()))
        wanted = mus > lower * (1.0 + _NARROW)
        if not wanted.any() or lines.epsilon.size + 2 * int(wanted.sum()) > _MOST_LINES:
            break
        lines = lines.refined(profile, wanted)
    return Bounds(lower, upper)


def _first_epsilons(profile: Profile, least: float) -> Array:
    """Return epsilons from 0 to where f is about as steep as at the least rate."""
    last = _FIRST_EPSILON
    farthest = min(profile.supremum, _LAST_EPSILON)
    while last < farthest:
        tail = float(-profile.at(np.array([last])).slope[0]) * math.exp(-last)
        if tail < least:
            break
        last *= 2.0
    last = min(last, farthest)
    knots = profile.breakpoints
    return np.unique(
        np.r_[last * np.linspace(0.0, 1.0, _LINES), knots[knots <= last][:_MOST_LINES]]
    )


def _mus_of_corners(lines: _Lines, least: float, most: float) -> tuple[Array, Array]:
    """Return, for each line, the larger mu at both ends of the rates that it serves, and where.

    Any partition of the rates is valid; neighbouring lines meet at about the ends of this one.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        meets = -np.diff(lines.delta) / np.diff(lines.slope)
    meets = np.where(np.isfinite(meets), meets, most)
    corners = np.minimum.accumulate(np.clip(meets, least, most))
    low, high = np.r_[corners, least], np.r_[most, corners]
    first, last = _mu_above(low, lines.power(low)), _mu_above(high, lines.power(high))
    # What serves a single rate is left to its neighbours.
    mus = np.where(low < high, np.maximum(first, last), -math.inf)
    return mus, np.asarray(np.where(first > last, low, high), dtype=np.float64)


def _mu_above(rates: Array, power: Array) -> Array:
    return _mu(rates, np.minimum(power, 1.0), 1.0)


def _mu(rates: Array, power: Array, side: float) -> Array:
    """Return ``Phi^-1(power) - Phi^-1(rate)``, rounded to one side."""
    from scipy.special import ndtri

    rest = np.maximum((1.0 - power) * (1.0 - side * ULP), 0.0)
    there = np.where(power > 0.5, -np.asarray(ndtri(rest)), np.asarray(ndtri(power)))
    here = np.asarray(ndtri(rates))
    size = np.where(np.isfinite(there), np.abs(there), 0.0) + np.abs(here) + 1.0
    return np.asarray(np.maximum(there - here + side * 64.0 * ULP * size, 0.0))


def regret(f: TradeOff, mu: float) -> Bounds:
    """Return the least kappa >= 0 with ``f(alpha + kappa) - kappa <= G_mu(alpha)`` for all alpha.

    f, which is symmetric, is at most ``G_mu`` moved by kappa up and right; mu is >= 0, or inf for
    the function 0.

    References:
        Kaissis, Kolek, Balle, Hayes and Rueckert, "Beyond the calibration point: mechanism
        comparison in differential privacy", ICML 2024, for the divergence.
    """
    lower, _, upper = f.forward.precisely(0.0)
    if mu == math.inf:
        # f meets the diagonal at (1 - delta(0)) / 2.
        return Bounds(0.5 * (1.0 - upper) * (1.0 - ULP), 0.5 * (1.0 - lower) * (1.0 + ULP))
    if mu == 0.0 or f == GaussianTradeOff(mu):
        return Bounds(0.0, 0.0)
    return _search_regret(f, GaussianTradeOff(mu), lower)


def _search_regret(f: TradeOff, gaussian: GaussianTradeOff, advantage: float) -> Bounds:
    """Return both ends, by more and more points of f where the difference is largest."""
    from scipy.special import ndtr

    most = 0.5 * (1.0 - advantage)
    rates = np.geomspace(min(_FIRST_RATE, most), most, _LINES)
    rates = np.r_[rates, most * 2.0 * ndtr(np.linspace(-_DEVIATIONS, 0.0, _LINES))]
    curve = _GaussianCurve(gaussian)
    lower, upper = 0.0, math.inf
    for _ in range(_ROUNDS):
        rates = np.unique(rates)
        power = f.power_bounds(rates)[0]
        v, w = rates + power, power - rates
        # Points below the function w of f, both ends included.
        v, w = np.r_[0.0, v[v < 1.0], 1.0], np.r_[0.0, w[v < 1.0], advantage]
        cells, places = _regrets_of_cells(curve, v, w)
        upper = min(upper, float(cells.max()))
        lower = max(lower, _regret_at(f.forward, curve, float(places[cells.argmax()])))
        wanted = np.flatnonzero(cells > lower * (1.0 + _NARROW_REGRET) + _LEAST_REGRET)
        if wanted.size == 0 or rates.size + wanted.size > _MOST_LINES:
            break
        ends = 0.5 * (v - w)
        rates = np.r_[rates, 0.5 * (ends[wanted] + ends[wanted + 1])]
    return Bounds(lower, max(upper, 0.0))


class _GaussianCurve:
    """The function w of ``G_mu``, by its points and by the lines that touch it."""

    def __init__(self, gaussian: GaussianTradeOff) -> None:
        from scipy.special import ndtr

        self.gaussian = gaussian
        half = 0.5 * gaussian.mu
        deviations = np.linspace(0.0, half + _FARTHEST, _GAUSSIAN_POINTS)
        self._epsilons = gaussian.mu * deviations
        self._places = ndtr(half - deviations) + ndtr(-half - deviations)

    def touching(self, v: Array) -> Array:
        """Return about the epsilons of the lines that touch the curve at these v."""
        return np.interp(-v, -self._places, self._epsilons)


def _regrets_of_cells(curve: _GaussianCurve, v: Array, w: Array) -> tuple[Array, Array]:
    """Return upper ends of kappa between neighbouring points, and where they are largest.

    ``G_mu`` is below two lines, each of which bounds it on one side of about where they meet; f is
    above its chord.
    """
    slope, intercept = _lines_above(curve.gaussian.forward, curve.touching(v))
    start, end = v[:-1], v[1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        meet = np.diff(intercept) / -np.diff(slope)
        rise = np.where(end > start, np.diff(w) / (end - start), 0.0)
    meet = np.clip(np.where(np.isfinite(meet), meet, end), start, end)
    chord = np.maximum(w[:-1] + rise * (meet - start), 0.0) * (1.0 - 8.0 * ULP)
    at_meet = np.maximum(slope[:-1] * meet + intercept[:-1], slope[1:] * meet + intercept[1:])
    differences = np.stack(
        [
            slope[:-1] * start + intercept[:-1] - w[:-1],
            at_meet - chord,
            slope[1:] * end + intercept[1:] - w[1:],
        ]
    )
    places = np.stack([start, meet, end])
    best = differences.argmax(axis=0)[np.newaxis]
    largest = np.take_along_axis(differences, best, 0)[0]
    return 0.5 * largest + 16.0 * ULP, np.take_along_axis(places, best, 0)[0]


def _regret_at(profile: Profile, curve: _GaussianCurve, v: float) -> float:
    """Return a lower end of kappa at about this v, by a point below the Gaussian's w."""
    from scipy.special import ndtr

    mu = curve.gaussian.mu
    # Where the difference is largest, the same line touches both.
    near = float(curve.touching(np.array([v]))[0])
    rate = float(ndtr(-0.5 * mu - near / mu))
    power = float(curve.gaussian.power_bounds(rate)[0])
    return 0.5 * (power - rate - _least_line(profile, rate + power, near)) - 16.0 * ULP


def _least_line(profile: Profile, v: float, near: float) -> float:
    """Return an upper end of f's function w at v: that of the best line found near an epsilon."""
    low, high = 0.0, 2.0 * near + _FIRST_EPSILON
    found = math.inf
    for _ in range(_SEARCHES):
        epsilon = np.linspace(low, high, _LINES)
        slope, intercept = _lines_above(profile, epsilon)
        heights = slope * v + intercept
        best = int(heights.argmin())
        found = min(found, float(heights[best]))
        low = float(epsilon[max(best - 1, 0)])
        high = float(epsilon[best + 1]) if best + 1 < _LINES else 2.0 * high
    return found


def _lines_above(profile: Profile, epsilon: Array) -> tuple[Array, Array]:
    """Return slopes and intercepts of lines above the function w of a profile, rounded up."""
    upper = np.minimum(profile.at(epsilon).upper, 1.0)
    # 2 / (1 + e^eps) = 1 - tanh(eps / 2)
    intercept = 2.0 * upper * np.exp(-epsilon) / (1.0 + np.exp(-epsilon))
    rounded = 1.0 + 8.0 * ULP
    return np.tanh(0.5 * epsilon) * rounded, intercept * rounded
