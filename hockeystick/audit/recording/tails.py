"""Upper bounds on probabilities of tails, widened past the last digits that scipy leaves open.

Each returns at least the probability named, for each argument: scipy's regularised beta and gamma
functions are right to some 1e-12 in the tails that matter here, and are raised by a part in 10^6.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from scipy import special

_WIDER: Final = 1 + 1e-6
# Below this scipy's digits are not known to be right, so that nothing smaller is returned.
_LEAST: Final = 1e-290


def _widened(probability: float) -> float:
    """Return a probability raised past its rounding errors."""
    return min(max(probability, _LEAST) * _WIDER, 1.0)


def binomial_at_least(count: int, trials: int, rate: float) -> float:
    """Return P[Binomial(trials, rate) >= count]."""
    if count <= 0 or rate >= 1:
        return 1.0
    if count > trials or rate <= 0:
        return _widened(0.0)
    return _widened(float(special.betainc(count, trials - count + 1, rate)))


def binomial_at_most(count: int, trials: int, rate: float) -> float:
    """Return P[Binomial(trials, rate) <= count]."""
    if count >= trials or rate <= 0:
        return 1.0
    if count < 0 or rate >= 1:
        return _widened(0.0)
    return _widened(float(special.betaincc(count + 1, trials - count, rate)))


def binomial_largest(trials: int, rate: float) -> float:
    """Return the largest probability of a single value of Binomial(trials, rate)."""
    if rate in (0, 1):
        return 1.0
    mode = min(math.floor((trials + 1) * rate), trials)
    nearby = np.arange(max(mode - 1, 0), min(mode + 1, trials) + 1)
    rest = trials - nearby
    logs = special.xlogy(nearby, rate) + special.xlog1py(rest, -rate)
    logs = logs - special.betaln(nearby + 1, rest + 1) - math.log(trials + 1)
    return _widened(math.exp(float(logs.max())))


def hypergeometric_sum(count: int, draws: int, rate: float) -> float:
    """Return a bound on both tails of a sum of independent hypergeometric numbers.

    Hoeffding (1963, theorem 4): a sample without replacement has no larger exponential moments than
    one with replacement, so that Chernoff's bound ``exp(-draws KL(count/draws || rate))`` holds.
    """
    share = count / draws
    divergence = special.rel_entr(share, rate) + special.rel_entr(1 - share, 1 - rate)
    return _widened(2 * math.exp(-draws * float(divergence)))


def squares_at_most(total: float, number: int) -> float:
    """Return P[chi-square of so many degrees of freedom <= total]."""
    return _widened(float(special.gammainc(number / 2, total / 2)))


def correlation_beyond(correlation: float, number: int) -> float:
    """Return P[|r| >= |correlation|] of independent normal vectors of a length of at least 2.

    ``(1 + r)/2`` is beta distributed with both parameters ``(number - 1)/2``.
    """
    half = (number - 1) / 2
    tail = special.betainc(half, half, (1 - min(abs(correlation), 1.0)) / 2)
    return _widened(2 * float(tail))


def distance_beyond(distance: float, number: int) -> float:
    """Return a bound on P[sup |F_n - F| >= distance], by Dvoretzky, Kiefer, Wolfowitz, Massart."""
    return _widened(2 * math.exp(-2 * number * distance * distance))
