"""Audits by mpmath: what hockeystick.audit does in floats, from the formulas alone.

Nothing here imports the package.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from mpmath import mp

Real: TypeAlias = Any

STEPS = 100
FEW = 36
TERMS = 20_000


def binomial_tail(count: int, trials: int, rate: Real) -> Real:
    """``P[Bin(n, p) >= k]``, as a sum."""
    if count <= 0:
        return mp.mpf(1)
    terms = (
        mp.binomial(trials, k) * rate**k * (1 - rate) ** (trials - k)
        for k in range(count, trials + 1)
    )
    return mp.fsum(terms)


def beta_tail(count: int, trials: int, rate: Real) -> Real:
    """The same as an incomplete beta function, for many trials."""
    return incomplete_beta(mp.mpf(count), mp.mpf(trials - count + 1), rate)


def incomplete_beta(a: Real, b: Real, x: Real) -> Real:
    """The regularized incomplete beta function, by its continued fraction (DLMF 8.17.22)."""
    if x in (0, 1):
        return mp.mpf(x)
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    front = mp.exp(
        a * mp.log(x) + b * mp.log1p(-x) + mp.loggamma(a + b) - mp.loggamma(a) - mp.loggamma(b)
    )
    value, upper, lower = mp.mpf(1), mp.mpf(1), mp.mpf(0)
    for n in range(1, TERMS):
        m = n // 2
        if n % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        lower = 1 / (1 + term * lower)
        upper = 1 + term / upper
        value *= upper * lower
        if abs(upper * lower - 1) < mp.mpf(10) ** -22:
            return front / (a * value)
    raise ArithmeticError("the continued fraction has not converged")


def crossing(rising: Callable[[Real], Real], low: Real, high: Real, steps: int = STEPS) -> Real:
    """Where a rising function reaches 0, by bisection."""
    low, high = mp.mpf(low), mp.mpf(high)
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return low


def upper_rate(count: int, trials: int, level: Real) -> Real:
    """Clopper and Pearson's upper bound: ``P[Bin(n, u) <= k] = level``."""
    if count >= trials:
        return mp.mpf(1)
    goal = 1 - mp.mpf(level)
    start = mp.mpf(count + 1) / trials

    def excess(u: Real) -> Real:
        return binomial_tail(count + 1, trials, u) - goal

    return mp.findroot(excess, (start, start + 3 * mp.sqrt(start / trials)), solver="anderson")


def epsilon_of(fnr: Real, fpr: Real, delta: Real) -> Real:
    """The epsilon that two upper bounds on error rates show."""
    delta = mp.mpf(delta)
    return max(mp.log((1 - fnr - delta) / fpr), mp.log((1 - fpr - delta) / fnr))


def normal_quantile(p: Real) -> Real:
    return mp.sqrt(2) * mp.erfinv(2 * mp.mpf(p) - 1)


def normal_cdf(x: Real) -> Real:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def gaussian_epsilon(mu: Real, delta: Real) -> Real:
    def spare(epsilon: Real) -> Real:
        found = normal_cdf(-epsilon / mu + mu / 2)
        return mp.mpf(delta) - (found - mp.exp(epsilon) * normal_cdf(-epsilon / mu - mu / 2))

    return crossing(spare, 0, 100)


def one_run_bound(canaries: int, made: int, correct: int, delta: Real, epsilon: Real) -> Real:
    """The right side of theorem 5.2 of Steinke, Nasr and Jagielski."""
    chance = 1 / (1 + mp.exp(-mp.mpf(epsilon)))
    tails = [binomial_tail(k, made, chance) for k in range(correct + 1)]
    base = tails[correct]
    most = max((tails[correct - i] - base) / i for i in range(1, correct + 1))
    return base + 2 * canaries * mp.mpf(delta) * most


def one_run_limit(canaries: int, made: int, correct: int, delta: Real, epsilon: Real) -> Real:
    """The largest ``P[V >= v]`` of all (epsilon, delta)-DP mechanisms, up to 1 (docs/theory)."""
    chance = 1 / (1 + mp.exp(-mp.mpf(epsilon)))
    tail = binomial_tail(correct, made, chance)
    mass = tail - binomial_tail(correct + 1, made, chance)
    return tail * (1 + canaries * mp.mpf(delta) * (1 - tail) / (correct * mass))


def one_run_epsilon(canaries: int, made: int, correct: int, delta: Real, level: Real) -> Real:
    return crossing(
        lambda e: one_run_limit(canaries, made, correct, delta, e) - mp.mpf(level), 0, 20, FEW
    )


def one_run_excess(
    canaries: int, made: int, correct: int, level: Real, inverse: Callable[[Real], Real]
) -> Real:
    """By how much the recursion of Mahloujifar, Melis and Chaudhuri exceeds all mass."""
    m = mp.mpf(canaries)
    r, h = mp.mpf(level) * correct / m, mp.mpf(level) * (made - correct) / m
    for i in range(correct - 1, -1, -1):
        new = max(h, inverse(r))
        r, h = min(r + mp.mpf(i) / (made - i) * (new - h), mp.mpf(1)), new
    return r + h - made / m


def one_run_mu(canaries: int, made: int, correct: int, level: Real) -> Real:
    def inverse_of(mu: Real) -> Callable[[Real], Real]:
        return lambda r: normal_cdf(normal_quantile(r) - mu)

    return crossing(
        lambda mu: -one_run_excess(canaries, made, correct, level, inverse_of(mu)), 1e-6, 10, FEW
    )
