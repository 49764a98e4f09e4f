"""Hockey-stick divergences of pairs that are known in closed form, in 50 digits.

A profile of an ordered pair (P, Q) is ``delta(eps) = sup over S of P(S) - e^eps Q(S)`` at every
real eps; that of (Q, P) is the swapped one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from mpmath.ctx_mp import MPContext
from mpmath.libmp import mpf_pos

mp = MPContext()  # the judge's own, so that nothing else is computed in its digits
mp.dps = 50
Real = Any
Profile: TypeAlias = "Terms | Laplace | Sampled"
MOST_TERMS = 800


def number(value: float) -> Real:
    return mp.mpf(repr(float(value)))


def _term(p: Real, q: Real, square: Real, epsilon: Real) -> Real:
    """The divergence of p N(mu, 1) from q N(0, 1), mu^2 = square."""
    if p == 0:
        return mp.mpf(0)
    if q == 0:
        return p
    if square == 0:
        return max(p - mp.exp(epsilon) * q, mp.mpf(0))
    mu, own = mp.sqrt(square), epsilon - mp.log(p / q)
    value = p * mp.ncdf(mu / 2 - own / mu) - mp.exp(epsilon) * q * mp.ncdf(-mu / 2 - own / mu)
    return max(value, mp.mpf(0))


@dataclass(frozen=True)
class Terms:
    """Outcomes that all see, of masses p and q, each with a Gaussian of its own beside it.

    A term (p, q, mu^2) is the outcome together with N(mu, 1) under P and N(0, 1) under Q.
    """

    terms: tuple[tuple[Real, Real, Real], ...]

    def delta(self, epsilon: Real) -> Real:
        return mp.fsum(_term(p, q, square, epsilon) for p, q, square in self.terms)

    def swapped(self) -> Terms:
        """Masses exchanged; a pair of Gaussians is its own mirror image."""
        return Terms(tuple((q, p, square) for p, q, square in self.terms))

    def times(self, other: Terms) -> Terms:
        return gathered((p * u, q * v, a + b) for p, q, a in self.terms for u, v, b in other.terms)

    def sampled(self, rate: Real) -> Terms | None:
        """(1 - rate) Q + rate P against Q, where there are no Gaussians."""
        if any(square for _, _, square in self.terms):
            return None
        return gathered(((1 - rate) * q + rate * p, q, a) for p, q, a in self.terms)

    def revealed(self, rate: Real) -> Terms:
        """Run with the probability rate, and all see whether."""
        run = [(rate * p, rate * q, a) for p, q, a in self.terms]
        return gathered([*run, (1 - rate, 1 - rate, mp.mpf(0))])


def gathered(terms: Iterable[tuple[Real, Real, Real]]) -> Terms:
    found: dict[tuple[Any, Any], tuple[Real, Real, Real]] = {}
    for p, q, square in terms:
        if p == 0 and q == 0:
            continue
        key = _rounded(mp.inf if q == 0 else p / q), _rounded(square)
        u, v, _ = found.get(key, (0, 0, 0))
        found[key] = p + u, q + v, square
    return Terms(tuple(found.values()))


def _rounded(value: Real) -> Any:
    """A number of 30 digits, as something that can be looked up."""
    return mpf_pos(value._mpf_, 100)


def gaussian(square: Real) -> Terms:
    return Terms(((mp.mpf(1), mp.mpf(1), mp.mpf(square)),))


def listed(p: Iterable[Real], q: Iterable[Real]) -> Terms:
    return gathered((mp.mpf(a), mp.mpf(b), mp.mpf(0)) for a, b in zip(p, q, strict=True))


def failing(epsilon: Real, delta: Real) -> Terms:
    """The worst (epsilon, delta)-DP pair of Kairouz, Oh and Viswanath."""
    rest = 1 - delta
    if epsilon == mp.inf:
        return listed((1, 0), (0, 1))
    yes = mp.exp(epsilon) / (1 + mp.exp(epsilon)) * rest
    no = rest / (1 + mp.exp(epsilon))
    return listed((delta, yes, no, 0), (0, no, yes, delta))


@dataclass(frozen=True)
class Laplace:
    """Laplace noise: losses between -most and most."""

    most: Real

    def delta(self, epsilon: Real) -> Real:
        if epsilon >= self.most:
            return mp.mpf(0)
        if epsilon <= -self.most:
            return -mp.expm1(epsilon)
        return -mp.expm1((epsilon - self.most) / 2)

    def swapped(self) -> Laplace:
        return self


@dataclass(frozen=True)
class Sampled:
    """(1 - rate) A + rate B against A, where base is B against A; ``adding`` the other order."""

    base: Profile
    rate: Real
    adding: bool = False

    def delta(self, epsilon: Real) -> Real:
        t, q = mp.exp(epsilon), self.rate
        if q == 0:
            return max(1 - t, mp.mpf(0))
        if not self.adding:
            rest = t - 1 + q
            return 1 - t if rest <= 0 else q * self.base.delta(mp.log(rest / q))
        share = 1 - t * (1 - q)
        if share <= 0:
            return mp.mpf(0)
        return share * self.base.swapped().delta(mp.log(t * q / share))

    def swapped(self) -> Sampled:
        return Sampled(self.base, self.rate, not self.adding)
