"""What some queries reveal when they are compared with a noisy threshold: attained pairs.

The queries are m with the answer a, and then j with the answer b; for the neighbour these are a + 1
and b - 1 (b, where all answers move the same way). All "below" among the first m tells of a high
threshold, and an "above" then of a large answer. Released is the place of the first "above" among
the last j, that it is among the first m, or that there is none. With ``T_i = E[F(r - a)^m
F(r - b)^i]``, F the distribution function of the queries' noise and r that of the threshold,

    P = (1 - T_0, T_0 - T_1, ..., T_(j-1) - T_j, T_j).

- Laplace query noise: on each side of a and b a power of F is a polynomial in ``exp(+-r/b_query)``,
  which is integrated term by term.
- Gaussian query noise: the trapezoidal rule on the real line. For an integrand that is analytic
  within a distance y the error is at most ``2 W / (e^(2 pi y / h) - 1)``, W the integral of its
  modulus at that distance; as ``|Phi(x + iy)| <= e^(y^2/2)``, ``W <= e^(A y^2 / 2)`` with
  ``A = 1/b_threshold^2 + (m + i)/b_query^2``, and ``y = 2 pi/(A h)`` leaves
  ``2 exp(-2 pi^2/(A h^2))`` (Trefethen and Weideman, "The Exponentially Convergent Trapezoidal
  Rule", SIAM Review 2014, theorem 5.1).

Noise of a scale is that of a lesser one with more noise added, for either kind, so that the pair is
taken at the largest readings of the scales. a and b are found by a search on floats, which decides
nothing but how much is revealed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Final, final

import numpy as np

from hockeystick.mechanisms.selection.sparse_vector import AboveThreshold, ComparisonNoise
from hockeystick.numerics import largest_reading
from hockeystick.numerics.multiprecision import mp, mpf, working_digits
from hockeystick.numerics.rounding import as_mpf
from hockeystick.privacy_loss.core.base import Array
from hockeystick.privacy_loss.core.outcomes import OutcomesLoss

# Scales, and ratios of scales, between which the attacks are computed.
_SCALES: Final = (0.1, 1e6)
_RATIOS: Final = (1e-3, 1e3)
# How many queries come first, and how many then; with Gaussian noise more of the first reveal more.
_BLOCKS: Final = ((0, 1), (1, 1), (4, 8))
_MANY: Final = 12
_GAUSSIAN_BLOCKS: Final = ((30, 8), (240, 8), (960, 8))
# The order, times the largest loss of Laplace noise of these scales, at which attacks are compared.
_ORDER: Final = 3.0
_NODES: Final = 401
_SEARCH_STEPS: Final = 80
# The logarithm of the error of the trapezoidal rule, and the largest number of its terms.
_LOG_ERROR: Final = 115.0
_MOST_TERMS: Final = 4000
_LEAST_TERM: Final = 1e-60
_DIGITS: Final = 70
_BITS: Final = 200
# Each distribution is mixed with this much of the mean of both, which covers all rounding of masses
# from the least one on.
_INWARD: Final = Fraction(1, 2**44)
_LEAST_MASS: Final = Fraction(1, 10**24)


@final
@dataclass(frozen=True, slots=True)
class Queries:
    """m queries with the answer ``first``, then j with the answer ``last``; the neighbour's differ.

    Answers are relative to the threshold, in units of the sensitivity; the neighbour's first ones
    are larger by 1.
    """

    many: int
    then: int
    first: Fraction
    last: Fraction
    neighbours_last: Fraction


@final
@dataclass(frozen=True, slots=True)
class _Noises:
    """The noises of the threshold and of the queries, and how the last answers move."""

    threshold: Fraction
    query: Fraction
    gaussian_threshold: bool
    gaussian_query: bool
    last_moves: int

    @property
    def ratio(self) -> float:
        return float(self.threshold / self.query)


@lru_cache(maxsize=256)
def attacked(mechanism: AboveThreshold) -> OutcomesLoss | None:
    """Return the loss of the queries that reveal most; None where the scales are extreme."""
    noises, queries = _noises(mechanism), revealing_queries(mechanism)
    return None if noises is None or queries is None else _loss(noises, queries)


@lru_cache(maxsize=256)
def nearly_largest(mechanism: AboveThreshold) -> OutcomesLoss | None:
    """Return the loss of one run that seldom is nearly the largest, for Laplace query noise.

    Many answers at the threshold are all below only where its noise is large; then one is above.
    """
    noises = _noises(mechanism)
    if noises is None or noises.gaussian_query or (mechanism.queries or math.inf) <= _MANY:
        return None
    zero = Fraction(0)
    return _loss(noises, Queries(_MANY, 1, zero, zero, zero + noises.last_moves))


@lru_cache(maxsize=256)
def revealing_queries(mechanism: AboveThreshold) -> Queries | None:
    """Return the queries that reveal most, of those that are tried; None for extreme scales."""
    noises = _noises(mechanism)
    if noises is None:
        return None
    asked = math.inf if mechanism.queries is None else mechanism.queries
    blocks = _BLOCKS + (_GAUSSIAN_BLOCKS if noises.gaussian_query else ())
    found = [
        _searched(noises, many, then)
        for many, then in blocks
        if many + then <= asked and _terms(noises, many + then) <= _MOST_TERMS
    ]
    return max(found, key=lambda one: one[0])[1]


def _noises(mechanism: AboveThreshold) -> _Noises | None:
    scales = mechanism.threshold_scale, mechanism.query_scale
    if not all(_SCALES[0] <= one <= _SCALES[1] for one in scales):
        return None
    if not _RATIOS[0] <= scales[0] / scales[1] <= _RATIOS[1]:
        return None
    return _Noises(
        largest_reading(scales[0]),
        largest_reading(scales[1]),
        mechanism.threshold_noise is ComparisonNoise.GAUSSIAN,
        mechanism.query_noise is ComparisonNoise.GAUSSIAN,
        0 if mechanism.monotone else -1,
    )


def _searched(noises: _Noises, many: int, then: int) -> tuple[float, Queries]:
    """Return an estimate of K at a typical order, and the answers for which it is largest."""
    from scipy.optimize import minimize

    below = _log_below(noises)
    largest = float(1 / noises.threshold + 2 / noises.query)
    order, move, half = _ORDER / largest, float(1 / noises.query), Fraction(1, 2)
    last_moves = noises.last_moves if many else -1

    def masses(first: float, last: float) -> Array:
        log_first, log_last = many * below(first), below(last)
        left = np.array([np.exp(log_first + i * log_last).mean() for i in range(then + 1)])
        return -np.diff(np.concatenate(([1.0], left, [0.0])))

    def less(answers: Array) -> float:
        p = masses(answers[0], answers[1])
        q = masses(answers[0] + move, answers[1] + last_moves * move)
        kept = p > 0.0
        if not (q[kept] > 0.0).all():
            return 0.0
        # A cap keeps far orders from overflowing.
        return -math.log(float((p[kept] * np.minimum(p[kept] / q[kept], 1e9) ** order).sum()))

    if not many:
        # One query: the two answers lie half a unit above and below the threshold.
        return -less(np.array([0.0, 0.5 * move])), Queries(0, 1, half, half, -half)
    start = [1.2 - 0.9 * math.log1p(many), 0.0]
    found = minimize(
        less, start, method="Nelder-Mead", options={"maxfev": _SEARCH_STEPS, "xatol": 1e-3}
    )
    # Sixteen binary digits of the answers are plenty, and short.
    first, last = (Fraction(round(one * 2**16), 2**16) * noises.query for one in found.x)
    return -float(found.fun), Queries(many, then, first, last, last + last_moves)


def _log_below(noises: _Noises) -> Callable[[float], Array]:
    """Return ``ln F(r - a)`` at equally likely r, for an answer a in query scales."""
    from scipy.special import log_ndtr, ndtri

    share = (np.arange(_NODES) + 0.5) / _NODES
    if noises.gaussian_threshold:
        at = ndtri(share) * noises.ratio
    else:
        at = np.sign(share - 0.5) * -np.log1p(-np.abs(2.0 * share - 1.0)) * noises.ratio
    if noises.gaussian_query:
        return lambda answer: np.asarray(log_ndtr(at - answer))
    ln_2 = math.log(2.0)

    def laplace(answer: float) -> Array:
        far = np.abs(at - answer)
        return np.where(at < answer, -far - ln_2, np.log1p(-0.5 * np.exp(-far)))

    return laplace


def _loss(noises: _Noises, queries: Queries) -> OutcomesLoss | None:
    """Return the loss of a run, slightly mixed with no loss; None where nothing is revealed."""
    with working_digits(_DIGITS):
        p = _masses(noises, queries, queries.first, queries.last)
        q = _masses(noises, queries, queries.first + 1, queries.neighbours_last)
    mixed = []
    for one, other in zip(p, q, strict=True):
        mean = (one + other) / 2
        mixed.append((one + (mean - one) * _INWARD, other + (mean - other) * _INWARD))
    by_ratio: dict[Fraction, tuple[Fraction, Fraction]] = {}
    for one, other in mixed:
        if min(one, other) < _LEAST_MASS:
            return None
        known = by_ratio.get(one / other, (Fraction(0), Fraction(0)))
        by_ratio[one / other] = (known[0] + one, known[1] + other)
    if len(by_ratio) < 2:
        return None
    return OutcomesLoss(tuple(by_ratio[ratio] for ratio in sorted(by_ratio)))


def _masses(noises: _Noises, queries: Queries, first: Fraction, last: Fraction) -> list[Fraction]:
    many, then = (first, queries.many), (last, queries.then)
    if noises.gaussian_query:
        chances = _by_trapezoids(noises, many, then)
    else:
        asked = [[many, (last, i)] for i in range(0 if many[1] else 1, then[1] + 1)]
        chances = [_sum_of_terms(noises, [one for one in each if one[1]]) for each in asked]
    left = [Fraction(int(mp.nint(mp.ldexp(chance, _BITS))), 1 << _BITS) for chance in chances]
    return [one - other for one, other in pairwise([Fraction(1), *left, Fraction(0)])]


def _terms(noises: _Noises, queries: int) -> float:
    if not noises.gaussian_query:
        return 0.0
    return 2.0 * _LOG_ERROR / math.pi * math.sqrt(1.0 + queries * noises.ratio**2)


def _by_trapezoids(
    noises: _Noises, many: tuple[Fraction, int], then: tuple[Fraction, int]
) -> list[mpf]:
    """Return the ``T_i``, from 1 on where no query comes first, for Gaussian F and r.

    They share the points, which are close enough for the last one. A product with less than 10^-60
    before the last queries is left out of all.
    """
    ratio = as_mpf(noises.threshold / noises.query)
    first, last = (as_mpf(answer / noises.query) for answer, _ in (many, then))
    width = 1 + ratio**2 * (many[1] + then[1])
    step = mp.pi * mp.sqrt(2 / (width * _LOG_ERROR))
    reach = mp.sqrt(2 * mp.mpf(_LOG_ERROR))
    totals = [mp.zero] * (then[1] + 1)
    for k in range(-int(reach / step), int(reach / step) + 1):
        at = k * step
        value = mp.npdf(at) * step * (mp.ncdf(ratio * at - first) ** many[1] if many[1] else 1)
        if value < _LEAST_TERM:
            continue
        below = mp.ncdf(ratio * at - last)
        for i in range(then[1] + 1):
            totals[i] += value
            value *= below
    return totals if many[1] else totals[1:]


def _sum_of_terms(noises: _Noises, asked: list[tuple[Fraction, int]]) -> mpf:
    """Return ``E[prod F(r - a)^m]`` for Laplace F, term by term between the kinks."""
    moment = _gaussian_moment if noises.gaussian_threshold else _laplace_moment
    kinks = sorted({answer for answer, _ in asked} | {Fraction(0)})
    total = mp.zero
    for low, high in pairwise([None, *kinks, None]):
        terms = {0: mp.one}
        for answer, number in asked:
            # F(r - a) by powers of ``exp(r / b)``, before or after its kink.
            at, before = as_mpf(answer / noises.query), low is None or low < answer
            below = {1: mp.exp(-at) / 2} if before else {0: mp.one, -1: -mp.exp(at) / 2}
            for _ in range(number):
                terms = _times(terms, below)
        for power, weight in terms.items():
            total += weight * moment(noises, power, low, high)
    return total


def _times(terms: dict[int, mpf], others: dict[int, mpf]) -> dict[int, mpf]:
    found: dict[int, mpf] = {}
    for power, weight in terms.items():
        for other, factor in others.items():
            found[power + other] = found.get(power + other, 0) + weight * factor
    return found


def _laplace_moment(
    noises: _Noises, power: int, low: Fraction | None, high: Fraction | None
) -> mpf:
    """Return ``E[e^(power r / b); low < r < high]`` for Laplace r, on one side of 0."""
    side = 1 if high is not None and high <= 0 else -1
    rate = power / noises.query + side / noises.threshold
    scale = as_mpf(2 * noises.threshold)
    if rate == 0 and low is not None and high is not None:
        # Powers that cancel the decay of the density stand between two kinks only.
        return as_mpf(high - low) / scale
    ends = [mp.zero if end is None else mp.exp(as_mpf(rate * end)) for end in (low, high)]
    return (ends[1] - ends[0]) / (as_mpf(rate) * scale)


def _gaussian_moment(
    noises: _Noises, power: int, low: Fraction | None, high: Fraction | None
) -> mpf:
    shift = as_mpf(power * noises.threshold / noises.query)
    # In standard deviations of the threshold, less the shift.
    ends = [
        beyond if end is None else as_mpf(end / noises.threshold) - shift
        for end, beyond in ((low, -mp.inf), (high, mp.inf))
    ]
    if ends[0] > 0:
        ends = [-ends[1], -ends[0]]
    return mp.exp(shift**2 / 2) * (mp.ncdf(ends[1]) - mp.ncdf(ends[0]))
