"""Profiles of runs of Laplace noise, plain in closed form and sampled by quadrature over outputs.

Outputs: B with density exp(-|x - 1| / b) / (2 b) where the record takes part, A with
exp(-|x| / b) / (2 b) where it does not; u = 1 / b.

Plain. ln(B/A) has the transform, with w = z + 1/2,

    M = (1/2) e^(-u/2) [e^(u w) (1 + 1/(2w)) + e^(-u w) (1 - 1/(2w))],

so that M^n is a binomial sum, and z (1 + z) = w^2 (1 - 1/(2w)) (1 + 1/(2w)) cancels a factor of
each kind. Laplace's inversion of a term is its residue at w = 0 (for n times the largest loss, at
w = 1/2 too), and 0 where its exponential falls to the right.

Sampled. Left of 0 and right of 1 the quotient p / q is constant; these outputs are two outcomes.
Between, outputs of up to three runs are integrated one by one, piece by piece between kinks:
H_m(c) = Int (prod p - c prod q)_+ dx over m runs = Int p(x) H_(m-1)(c q(x) / p(x)) dx.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise

import numpy as np
from mpmath import mp

from tests.oracles.zoo_line import WIDE_FIGURES, root
from tests.oracles.zoo_outputs import Pair, Real, pair


def _times(coefficients: list[Real], slope: int) -> list[Real]:
    """Coefficients of a polynomial times 1 + slope x."""
    shifted = zip([*coefficients, 0], [0, *coefficients], strict=True)
    return [a + slope * b for a, b in shifted]


@lru_cache(maxsize=512)
def _numerator(runs: int, high: int) -> tuple[tuple[int, ...], int]:
    """(1 + x)^(high - 1) (1 - x)^(runs - high - 1), x = 1/(2w): a polynomial plus rest / (1 - x).

    There is a rest only where high = runs.
    """
    poly = [1]
    for _ in range(high - 1):
        poly = _times(poly, 1)
    if high < runs:
        for _ in range(runs - high - 1):
            poly = _times(poly, -1)
        return tuple(poly), 0
    rest = 2 ** (runs - 1)
    return tuple(c - rest for c in accumulate(poly))[:-1], rest


def _residues(runs: int, high: int, t: Real) -> Real:
    """Inverse transform at t > 0 of (1 + x)^high (1 - x)^(runs - high) / (w^2 - 1/4)."""
    poly, rest = _numerator(runs, high)
    total, term = mp.mpf(0), t  # the inverse of 1/w^(2 + j) is t^(1 + j) / (1 + j)!
    for j, c in enumerate(poly):
        total += c * term
        term *= t / (2 * (2 + j))
    return total + rest * 2 * mp.expm1(t / 2)


@dataclass(frozen=True)
class Laplace:
    """The profile of runs of Laplace noise of scale b for sensitivity 1."""

    scale: Real
    runs: int

    def delta(self, epsilon: Real) -> Real:
        """The sum over how often the transform's first exponential is taken."""
        u, n = 1 / self.scale, self.runs
        with mp.extradps(40 + n):
            total = mp.mpf(0)
            for k in range(1, n + 1):
                t = (2 * k - n) * u - epsilon
                if t > 0:
                    total += mp.binomial(n, k) * _residues(n, k, t)
            scaled = total * (mp.exp(-u / 2) / 2) ** n * mp.exp(epsilon / 2)
        return +scaled

    def epsilon(self, delta: Real) -> Real:
        return root(self.delta, delta, self.runs / self.scale)


def densities(scale: Real, rate: Real) -> tuple[Callable[[Real], Real], Callable[[Real], Real]]:
    """Of an output between 0 and 1, with the record and without it."""

    def without(x: Real) -> Real:
        return mp.exp(-x / scale) / (2 * scale)

    def with_record(x: Real) -> Real:
        return (1 - rate) * without(x) + rate * without(1 - x)

    return with_record, without


def ends(scale: Real, rate: Real) -> Pair:
    far = mp.exp(-1 / scale) / 2
    half = mp.mpf(1) / 2
    return Pair(((1 - rate) * half + rate * far, (1 - rate) * far + rate * half), (half, far))


@lru_cache(maxsize=64)
def gauss_legendre(n: int, dps: int) -> list[tuple[Real, Real]]:
    """Nodes and weights on [-1, 1], by Newton's method on P_n."""
    found = []
    with mp.workdps(dps + 10):
        for start in np.polynomial.legendre.leggauss(n)[0]:
            x = mp.mpf(float(start))
            for _ in range(math.ceil(math.log2((dps + 10) / 14)) + 2):
                below, here = mp.mpf(1), x
                for k in range(1, n):
                    below, here = here, ((2 * k + 1) * x * here - k * below) / (k + 1)
                slope = n * (x * here - below) / (x * x - 1)
                node, x = x, x - here / slope
            found.append((node, 2 / ((1 - node * node) * slope**2)))
    return found


def nodes(scale: Real, rate: Real, count: int) -> Pair:
    """The outcomes at both ends, and Gauss-Legendre nodes between."""
    rule = gauss_legendre(count, mp.dps)
    first, second = densities(scale, rate)
    outside = ends(scale, rate)
    p = [w / 2 * first((1 + x) / 2) for x, w in rule]
    q = [w / 2 * second((1 + x) / 2) for x, w in rule]
    return pair([*p, *outside.p], [*q, *outside.q])


@dataclass(frozen=True)
class FewSampled:
    """The profile of up to three runs, removing (P with the record) or adding (P without it)."""

    scale: Real
    rate: Real
    runs: int
    adding: bool
    count: int = 40  # nodes of a piece

    def _p_and_q(self) -> tuple[Callable[[Real], Real], Callable[[Real], Real]]:
        with_record, without = densities(self.scale, self.rate)
        return (without, with_record) if self.adding else (with_record, without)

    def _place(self, c: Real) -> Real:
        """The output between 0 and 1 where p / q = c, or the nearer end."""
        ratio = 1 / c if self.adding else c
        mixed = (ratio - 1 + self.rate) / self.rate  # B / A = exp((2 x - 1) / scale)
        if mixed <= mp.exp(-1 / self.scale):
            return mp.mpf(0)
        return min((self.scale * mp.log(mixed) + 1) / 2, mp.mpf(1))

    def _integral(self, low: Real, high: Real, *, first: bool) -> Real:
        """Mass of the outputs between, under P or under Q, by antiderivatives."""
        s = self.scale
        without = (mp.exp(-low / s) - mp.exp(-high / s)) / 2
        taking = (mp.exp(-(1 - high) / s) - mp.exp(-(1 - low) / s)) / 2
        mixed = (1 - self.rate) * without + self.rate * taking
        return mixed if first != self.adding else without

    def _inner(self, c: Real, m: int) -> Real:
        if m == 0:
            return max(1 - c, mp.mpf(0))
        if m == 1:
            x, one, zero = self._place(c), mp.mpf(1), mp.mpf(0)
            low, high = (zero, x) if self.adding else (x, one)
            return self._integral(low, high, first=True) - c * self._integral(
                low, high, first=False
            )
        p, q = self._p_and_q()
        extremes = (p(mp.mpf(0)) / q(mp.mpf(0)), p(mp.mpf(1)) / q(mp.mpf(1)))
        kinks = [extremes[0] ** i * extremes[1] ** (m - 1 - i) for i in range(m)]
        cuts = sorted({mp.mpf(0), mp.mpf(1), *(self._place(c / kink) for kink in kinks)})
        rule = gauss_legendre(self.count, mp.dps)
        total = mp.mpf(0)
        for low, high in pairwise(cuts):
            half = (high - low) / 2
            for t, w in rule:
                x = low + half * (1 + t)
                total += half * w * p(x) * self._inner(c * q(x) / p(x), m - 1)
        return total

    def delta(self, epsilon: Real) -> Real:
        """The sum over how often an output is at either end."""
        outside = ends(self.scale, self.rate)
        p, q = (outside.q, outside.p) if self.adding else (outside.p, outside.q)
        total = mp.mpf(0)
        for i in range(self.runs + 1):
            for j in range(self.runs + 1 - i):
                m = self.runs - i - j
                ways = mp.factorial(self.runs) / (
                    mp.factorial(i) * mp.factorial(j) * mp.factorial(m)
                )
                above, below = p[0] ** i * p[1] ** j, q[0] ** i * q[1] ** j
                total += ways * above * self._inner(mp.exp(epsilon) * below / above, m)
        return total

    def epsilon(self, delta: Real) -> Real:
        p, q = self._p_and_q()
        largest = max(abs(mp.log(p(mp.mpf(x)) / q(mp.mpf(x)))) for x in (0, 1))
        return root(self.delta, delta, self.runs * largest, WIDE_FIGURES)
