"""Where both error rates of a test lie, with a stated confidence: a region, not two intervals.

Let the test err on y of m trials of one kind, with probability q, and hit in x of n trials of the
other, with probability p, all independent. The exact p-values

    v(q) = P[Bin(m, q) <= y],    w(p) = P[Bin(n, p) >= x]

are independent and, at the true q and p, stochastically no smaller than uniform. With U and V
independent normal variables, let ``a, b > 0`` be such that ``P[(U+/a)^2 + (V+/b)^2 > 1] <= alpha``.
Then the set of all (q, p) with

    (PhiInv(1 - w(p))+ / a)^2 + (PhiInv(1 - v(q))+ / b)^2 <= 1

holds the true rates with probability at least ``1 - alpha``. Its lower right boundary is the curve
of pairs of exact bounds (Clopper and Pearson 1934) at the levels ``Phi(-b sin s)`` and
``Phi(-a cos s)``, s from 0 to pi/2.

The tests are fixed before the scores are seen. The k-th largest of m "out" scores, as a threshold
that a score has to exceed, has a false positive rate that is stochastically at most
``Beta(k, m - k + 1)``: the bound for k - 1 false positives of m. Given the "out" scores it is a
number, so that the "in" scores above it are a binomial count; no data are held out. The same holds
for the k-th smallest "in" score. Several ranks hold together by Bonferroni's inequality.

Tied scores are ordered at random, as if each had a uniform number behind its decimals. Of c tied
scores, of which the j-th largest is the threshold, that number is ``Beta(c - j + 1, j)``, and each
tied score of the other kind exceeds it or not by its own. Proofs: docs/theory/audit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hockeystick.audit.results import OperatingPoint
from hockeystick.audit.scores import Array
from hockeystick.errors import HockeystickError

Side = Literal["out", "in"]
_ENDS: Final[tuple[Literal["left"], Literal["right"]]] = ("left", "right")

# Ranks grow by this factor, up to half of the scores.
RATIO: Final = 3.0
# At small rates, where audits find most, the rarer error is what is uncertain.
SHARE: Final = 0.85


@dataclass(frozen=True, slots=True)
class Rule:
    """A test by a threshold, what it did, and the levels of its confidence region.

    The errors are false positives on the side "out", false negatives on the side "in".
    """

    side: Side
    threshold: float
    above: bool
    counts: Counts
    levels: Levels

    @property
    def region(self) -> Region:
        """The corners of its confidence region."""
        return region(self.counts, self.levels)

    def point(self, corners: Region, at: int) -> OperatingPoint:
        """Return one of the corners as a point of the curve of true and false positives."""
        counts = self.counts
        errors, hits = int(counts.errors), int(counts.hits)
        of_errors, of_hits = int(counts.error_trials), int(counts.hit_trials)
        if self.side == "out":
            fpr, tpr = float(corners.q[at]), float(corners.p[at])
            wrong, out, right, of_in = errors, of_errors, hits, of_hits
        else:
            fpr, tpr = float(corners.miss[at]), float(corners.rest[at])
            wrong, out, right, of_in = of_hits - hits, of_hits, of_errors - errors, of_errors
        rule = f"score {'>' if self.above else '>='} {self.threshold:.6g}"
        where = rule, self.threshold, fpr, tpr
        return OperatingPoint(
            *where, false_positives=wrong, out_trials=out, true_positives=right, in_trials=of_in
        )


def ranks(trials: int) -> list[int]:
    """Return 1 and its multiples by a factor, up to half of the trials."""
    found = [1]
    while (larger := max(round(found[-1] * RATIO), found[-1] + 1)) <= trials // 2:
        found.append(larger)
    return found


def at_rank(side: Side, rank: int, both: tuple[Array, Array], levels: Levels, seed: int) -> Rule:
    """Return the test at a rank of sorted scores, "in" and "out"."""
    above = side == "out"
    errs, other = (-both[1][::-1], -both[0][::-1]) if above else both
    at = float(errs[rank - 1])
    counts = Counts(rank - 1, errs.size, _beyond(at, rank, errs, other, seed), other.size)
    return Rule(side, -at if above else at, above, counts, levels)


def _beyond(threshold: float, rank: int, errs: Array, other: Array, seed: int) -> int:
    """Return how many rising scores come before the one of a rank of the other kind."""
    before, behind = (int(np.searchsorted(other, threshold, side=s)) for s in _ENDS)
    if behind == before or (errs[0] == errs[-1] and other[0] == other[-1] == errs[0]):
        return before
    first, last = (int(np.searchsorted(errs, threshold, side=s)) for s in _ENDS)
    generator = np.random.default_rng([seed, 4, errs.size, rank])
    place = rank - first
    number = generator.beta(place, last - first - place + 1)
    return before + int(generator.binomial(behind - before, number))


def at_ranks(
    inside: Array, outside: Array, alpha: float, seed: int, *, boxes: bool = False
) -> list[Rule]:
    """Return the tests at fixed ranks of both kinds, all of which hold together."""
    both = np.sort(inside), np.sort(outside)
    places: list[tuple[Side, int]] = [("out", k) for k in ranks(outside.size)]
    places += [("in", k) for k in ranks(inside.size)]
    each = alpha / len(places)
    levels = rectangle(each) if boxes else quarter_ellipse(each, SHARE)
    return [at_rank(side, rank, both, levels, seed) for side, rank in places]


def at_threshold(inside: Array, outside: Array, threshold: float, levels: Levels) -> Rule:
    """Return the test by a threshold that was fixed in advance: "in" where a score reaches it."""
    false_positives = int(np.count_nonzero(outside >= threshold))
    true_positives = int(np.count_nonzero(inside >= threshold))
    counts = Counts(false_positives, outside.size, true_positives, inside.size)
    return Rule("out", threshold, False, counts, levels)


def best_of(rules: Sequence[Rule], objective: Objective) -> tuple[float, OperatingPoint]:
    """Return the largest value that a test proves, and where its region has it.

    All have the same levels. No test proves more than the value in the middle of its region, so
    that most need no more.
    """
    names = ("errors", "error_trials", "hits", "hit_trials")
    counts = Counts(*(np.array([getattr(one.counts, name) for one in rules]) for name in names))
    at = rules[0].levels[0].size // 2
    middle = tuple(one[at : at + 1] for one in rules[0].levels)
    middles = objective(region(counts, (middle[0], middle[1])))[:, 0]
    order = np.argsort(-middles, kind="stable").tolist()
    best = _proven(rules[order[0]], objective)
    for i in order[1:]:
        if middles[i] <= best[0]:
            break
        best = max(best, _proven(rules[i], objective), key=lambda one: one[0])
    return best


def _proven(rule: Rule, objective: Objective) -> tuple[float, OperatingPoint]:
    corners = rule.region
    values = objective(corners)
    at = int(np.argmin(values))
    return float(values[at]), rule.point(corners, at)


Count: TypeAlias = int | NDArray[np.int64]

# SciPy's incomplete beta function and its inverse are asked with this much to spare, relative to
# the level: thousands of times what tests find them to be off.
SPARE: Final = 1e-9
_WIDER: Final = 4.0
_LARGEST_STEP: Final = 1e-3


def upper_rate(count: Count, trials: Count, level: Array) -> Array:
    """Return a probability at which so small a count has at most a probability of the level."""
    k, level = np.broadcast_arrays(np.asarray(count, dtype=np.float64), level)
    a, b = k + 1.0, np.maximum(trials - k, 1.0)
    rate = np.asarray(special.betainccinv(a, b, level * (1.0 - SPARE)), dtype=np.float64)
    rate = _widened(rate, lambda r: special.betaincc(a, b, r) <= level, 1.0)
    return np.where(k >= trials, 1.0, np.minimum(rate, 1.0))


def lower_rate(count: Count, trials: Count, level: Array) -> Array:
    """Return a probability at which so large a count has at most a probability of the level."""
    k, level = np.broadcast_arrays(np.asarray(count, dtype=np.float64), level)
    a, b = np.maximum(k, 1.0), trials - k + 1.0
    rate = np.asarray(special.betaincinv(a, b, level * (1.0 - SPARE)), dtype=np.float64)
    rate = _widened(rate, lambda r: special.betainc(a, b, r) <= level, -1.0)
    return np.where(k <= 0, 0.0, rate)


def at_least(count: Array, trials: int, rate: Array | float) -> Array:
    """Return ``P[Bin(n, p) >= k]``, as SciPy rounds it."""
    inside = np.clip(count, 1.0, trials)
    value = np.asarray(special.betainc(inside, trials - inside + 1.0, rate), dtype=np.float64)
    return np.where(count <= 0, 1.0, np.where(count > trials, 0.0, value))


def fewest(level: Array, trials: int, rate: Array) -> Array:
    """Return the least k, up to n + 1, with ``P[Bin(n, p) >= k]`` at most the level."""
    low = np.zeros(np.broadcast_shapes(level.shape, rate.shape))
    high = np.full(low.shape, trials + 1.0)
    while bool((high - low > 1.0).any()):
        middle = np.floor(0.5 * (low + high))
        found = at_least(middle, trials, rate) <= level
        low, high = np.where(found, low, middle), np.where(found, middle, high)
    return high


def _widened(rate: Array, holds: Callable[[Array], Any], sign: float) -> Array:
    """Return rates moved outward until the function that they invert says that they hold."""
    step = 1e-12
    while step < _LARGEST_STEP:
        moved = rate * (1.0 + sign * step)
        if bool(np.all(holds(np.clip(moved, 0.0, 1.0)))):
            return np.asarray(moved)
        step *= _WIDER
    raise HockeystickError("the incomplete beta function could not be inverted")


CELLS: Final = 256
# Where the confidence is lower, what is said has this one: the axes have to be positive.
_LARGEST_ALPHA: Final = 0.5
_NODES: Final = 80
_BISECTIONS: Final = 60
# They take longer than the integrals.
_nodes: Final = cache(np.polynomial.legendre.leggauss)

Levels: TypeAlias = tuple[Array, Array]


@dataclass(frozen=True, slots=True)
class Counts:
    """At most ``errors`` of ``error_trials`` and at least ``hits`` of ``hit_trials``, or arrays."""

    errors: int | np.ndarray
    error_trials: int | np.ndarray
    hits: int | np.ndarray
    hit_trials: int | np.ndarray


@dataclass(frozen=True, slots=True)
class Region:
    """Corners of cells that cover the boundary of a confidence region.

    In the whole region a function that falls in q and rises in p is at least its least value at
    the corners; ``rest`` is at most ``1 - q`` and ``miss`` at least ``1 - p``, precise relative to
    themselves.
    """

    q: Array
    p: Array
    rest: Array
    miss: Array


Objective: TypeAlias = Callable[[Region], Array]


def region(counts: Counts, levels: Levels) -> Region:
    """Return the corners for counts (one array more where the counts are arrays, of axis 0)."""
    for_errors, for_hits = levels
    y, m, x, n = (
        np.asarray(one)[..., np.newaxis]
        for one in (counts.errors, counts.error_trials, counts.hits, counts.hit_trials)
    )
    return Region(
        upper_rate(y, m, for_errors),
        lower_rate(x, n, for_hits),
        lower_rate(m - y, m, for_errors),
        upper_rate(n - x, n, for_hits),
    )


def rectangle(alpha: float) -> Levels:
    """Return the levels of two bounds at alpha/2 each."""
    half = np.array([0.5 * alpha])
    return half, half


@lru_cache(maxsize=256)
def quarter_ellipse(alpha: float, share: float, cells: int = CELLS) -> Levels:
    """Return the levels, for errors and for hits, at the corners of cells along the boundary.

    The region misses the true rates with probability alpha at most, and a share in (0, 1) of
    ``Phi(-a) + Phi(-b)`` is that of the errors.
    """
    a, b = _axes(min(alpha, _LARGEST_ALPHA), share)
    s = np.linspace(0.0, 0.5 * math.pi, cells + 1)
    for_errors = np.asarray(special.ndtr(-b * np.sin(s[1:])) * (1.0 - SPARE))
    for_hits = np.asarray(special.ndtr(-a * np.cos(s[:-1])) * (1.0 - SPARE))
    for levels in (for_errors, for_hits):
        levels.setflags(write=False)
    return for_errors, for_hits


def _axes(alpha: float, share: float) -> tuple[float, float]:
    """Return a and b with ``P[(U+/a)^2 + (V+/b)^2 > 1]`` at most alpha."""
    low, high = 0.25 * alpha, alpha
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        outside = outside_probability(*_axes_of(middle, share))
        low, high = (middle, high) if outside <= alpha * (1.0 - SPARE) else (low, middle)
    return _axes_of(low, share)


def _axes_of(total: float, share: float) -> tuple[float, float]:
    """Return a and b of ``Phi(-a) + Phi(-b)``."""
    return -float(special.ndtri((1.0 - share) * total)), -float(special.ndtri(share * total))


def outside_probability(a: float, b: float) -> float:
    """Return ``P[(U+/a)^2 + (V+/b)^2 > 1]`` for independent standard normal U and V.

    ``Phi(-b)/2 + Phi(-a) + integral over u in (0, a) of phi(u) Phi(-b sqrt(1 - u^2/a^2))``, by
    Gauss and Legendre in the angle, in which the integrand is entire.
    """
    nodes, weights = _nodes(_NODES)
    angle = 0.25 * math.pi * (nodes + 1.0)
    density = np.exp(-0.5 * (a * np.sin(angle)) ** 2) / math.sqrt(2.0 * math.pi)
    inner = density * special.ndtr(-b * np.cos(angle)) * a * np.cos(angle)
    integral = 0.25 * math.pi * float(weights @ inner)
    return 0.5 * float(special.ndtr(-b)) + float(special.ndtr(-a)) + integral


def epsilons(delta: float) -> Objective:
    """Return the objective that is the epsilon which each corner proves at a delta.

    (epsilon, delta)-DP has ``p <= e^eps q + delta`` and ``1 - q <= e^eps (1 - p) + delta``.
    """

    def objective(corners: Region) -> Array:
        forward = _log_ratio(corners.p - delta, corners.q, corners.p)
        backward = _log_ratio(corners.rest - delta, corners.miss, corners.rest)
        return np.maximum(forward, backward)

    return objective


def _log_ratio(top: Array, bottom: Array, of: Array) -> Array:
    """Return ``ln(top / bottom)`` rounded down, where top is a difference from a number."""
    top = np.maximum(top - 2.0**-52 * of, 0.0)
    with np.errstate(divide="ignore"):
        value = np.log(top) - np.log(bottom)
    return np.asarray(value - 2.0**-46 * (1.0 + np.abs(np.log(bottom))))


def mus(corners: Region) -> Array:
    """Return the mu that each corner proves: mu-GDP has ``PhiInv(p) - PhiInv(q) <= mu``."""
    hit, error = _quantile(corners.p, corners.miss), _quantile(corners.rest, corners.q)
    with np.errstate(invalid="ignore"):
        value = hit + error - 2.0**-40 * (1.0 + np.abs(hit) + np.abs(error))
    return np.where(np.isnan(value), -np.inf, value)


def _quantile(below: Array, above: Array) -> Array:
    """Return ``PhiInv`` of a probability, given with the rest, whichever is smaller."""
    return np.asarray(
        np.where(below <= 0.5, special.ndtri(below), -np.asarray(special.ndtri(above)))
    )
