"""Guarantees as the worst pairs that satisfy them, or as pairs that do."""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

from tests.judge.cases import Case, Family, exactly, of_terms
from tests.judge.noises import integer_pair
from tests.judge.profiles import Real, Terms, failing, gaussian, listed, mp, number

_ORDERS = (1.01, 1.1, 1.3, 1.6, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0, 12.0, 20.0, 40.0, 80.0, 200.0, 1000.0)


def pure(epsilon: float) -> Family:
    return exactly(of_terms(failing(number(epsilon), mp.mpf(0))))


def approximate(epsilon: float, delta: float) -> Family:
    return exactly(of_terms(failing(number(epsilon), number(delta))))


def gaussian_dp(mu: float) -> Family:
    return exactly(of_terms(gaussian(number(mu) ** 2)))


def concentrated(rho: float) -> Family:
    """Gaussian noise, discrete Gaussian noise and randomized response of that rho."""
    r = number(rho)
    if r == 0:
        return exactly(of_terms(gaussian(0)))
    attacks = [of_terms(gaussian(2 * r)), _response_of_rho(r)]
    if 0.02 <= rho <= 8.0:
        # A sigma rounded up costs less.
        sigma = float(f"{math.sqrt(0.5 / rho) * (1 + 1e-9):.12g}")
        attacks.append(of_terms(integer_pair("DiscreteGaussian", sigma, 1)))
    return Family(tuple(attacks), None, bound=by_divergences(lambda a: rho * a, math.inf))


def truncated(rho: float, omega: float) -> Family:
    base = concentrated(rho)
    if rho == 0.0:
        return base
    bound = by_divergences(lambda a: rho * a if a < omega else math.inf, omega)
    return Family(base.attacks, None, bound=bound)


def renyi(pairs: tuple[tuple[float, float], ...]) -> Family:
    least, known = min(tau / order for order, tau in pairs), dict(pairs)
    bound = by_divergences(lambda a: known[a], math.inf, orders=tuple(known))
    return Family((of_terms(gaussian(2 * number(least * (1 - 1e-12)))),), None, bound=bound)


def lists(p: Sequence[float], q: Sequence[float]) -> Family:
    return exactly(of_terms(listed(map(number, p), map(number, q))))


def points(guarantees: Sequence[tuple[float, float]]) -> Family:
    """The worst pair that is (epsilon, delta)-DP for each of these."""
    return exactly(of_terms(from_guarantees(guarantees)))


def identity_mixture(weight: float, mu: float) -> Family:
    """With a probability a Gaussian, else nothing, and all see which."""
    return exactly(of_terms(gaussian(number(mu) ** 2).revealed(number(weight))))


def from_guarantees(known: Sequence[tuple[float, float]]) -> Terms:
    """The polygon of the largest power: the least of lines ``delta + e^eps a``, and their mirrors.

    Mirrored, ``1 - e^-eps (1 - delta - a)``.
    """
    lines: list[tuple[Real, Real]] = [(mp.mpf(1), mp.mpf(0))]
    for epsilon, delta in known:
        t, d = mp.exp(number(epsilon)), number(delta)
        lines += [(d, t), (1 - (1 - d) / t, 1 / t)]

    def power(a: Real) -> Real:
        return min(cut + slope * a for cut, slope in lines)

    corners = {mp.mpf(0), mp.mpf(1)}
    for cut, slope in lines:
        for other, steep in lines:
            if slope != steep and 0 < (other - cut) / (slope - steep) < 1:
                corners.add((other - cut) / (slope - steep))
    ordered = sorted(corners)
    heights = [power(a) for a in ordered]
    p = [heights[0], *(b - a for a, b in pairwise(heights)), 1 - heights[-1]]
    q = [mp.mpf(0), *(b - a for a, b in pairwise(ordered)), mp.mpf(0)]
    return listed([max(one, mp.mpf(0)) for one in p], q)


def by_divergences(
    tau: Callable[[float], float], omega: float, orders: tuple[float, ...] | None = None
) -> Callable[[float], float]:
    """The bound of Canonne, Kamath and Steinke 2020, proposition 12, at the best of some orders."""
    asked = orders or (*_ORDERS, *(1 + 10 ** (k / 8 - 2) for k in range(40)))

    def bound(epsilon: float) -> float:
        best = 0.0
        for a in asked:
            if a < omega or orders:
                log = (a - 1) * (tau(a) - epsilon + math.log1p(-1 / a)) - math.log(a)
                best = min(best, log)
        return math.exp(best) * (1 + 1e-9) if best > -700 else 1e-300

    return bound


@lru_cache(maxsize=128)
def _response_of_rho(rho: Real) -> Case:
    """Randomized response with ``eps tanh(eps/2) = rho``, which is rho-zCDP (Steinke 2024)."""
    epsilon = mp.findroot(lambda e: e * mp.tanh(e / 2) - rho, mp.sqrt(2 * rho) + rho / 2)
    return of_terms(failing(epsilon * (1 - mp.mpf("1e-30")), mp.mpf(0)))


LEAVES: dict[str, Callable[..., Any]] = {
    "PureDP": pure,
    "ApproxDP": approximate,
    "GDP": gaussian_dp,
    "ZCDP": concentrated,
    "TCDP": truncated,
    "RenyiDP": renyi,
    "FDP of lists": lists,
    "FDP of deltas": points,
    "FDP mixture": identity_mixture,
}
