"""Noise that decays from round to round, and the round in which it has spent a budget."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache, reduce
from itertools import accumulate, groupby
from operator import matmul

import numpy as np
from scipy.special import gammaln

from hockeystick.accountants import epsilon as epsilon_of
from hockeystick.conversions.published.of_their_time import TENSORFLOW_ORDERS
from hockeystick.mechanisms import Gaussian, Mechanism, PoissonSubsampled
from hockeystick.results import Certified
from tests.claims.fed_cdp import step_epsilon
from tests.claims.found import Found, way


@way
def round_of_the_budget(
    *,
    policy: str,
    accountant: str,
    rounds: int,
    start: float,
    end: float,
    rate: float,
    local_steps: int,
    delta: float,
    epsilon: float,
    cycles: int = 1,
    decimals: int = 0,
) -> Found:
    """Return the first round after which an accountant has spent epsilon; inf if there is none.

    The noise of round t = 1, ..., T goes from ``start`` at 0 to ``end`` at T by a policy: "linear",
    "exponential", or "staircase"; or by "cyclic", cosines that go to nothing. How wide the stairs
    are is not published: the width that spends it first is taken, or else the one that spends most.
    """
    best, most = math.inf, 0.0
    for noises in _noises(policy, rounds, start, end, cycles):
        spent = _spending(accountant, noises, rate, local_steps, delta, epsilon, decimals)
        for done, total in enumerate(spent, start=1):
            most = max(most, total)
            if total >= epsilon:
                best = min(best, done)
                break
    quantity = "" if math.isfinite(best) else f"all rounds spend {most:.3f} of {epsilon:g}"
    return Found(best, best, "exact", quantity)


@way
def decayed_epsilon(
    *,
    policy: str,
    rounds: int,
    start: float,
    end: float,
    rate: float,
    local_steps: int,
    delta: float,
    width: int = 1,
) -> Certified:
    """Return the epsilon of all rounds, exactly; with stairs of one width."""
    every = _noises(policy, rounds, start, end, 1)
    noises = every[width - 1] if policy == "staircase" else every[0]
    steps: list[Mechanism] = [
        PoissonSubsampled(Gaussian(noise), rate) ** (local_steps * len(list(same)))
        for noise, same in groupby(noises)
    ]
    return epsilon_of(reduce(matmul, steps), delta)


def _spending(
    accountant: str,
    noises: list[float],
    rate: float,
    local_steps: int,
    delta: float,
    epsilon: float,
    decimals: int,
) -> Iterator[float]:
    """Return what an accountant of the time has for the first round, the first two, and so on."""
    log = math.log(1.0 / delta)
    if accountant == "moments":
        return _moments(noises, rate, local_steps, log, epsilon)
    if accountant == "zcdp":
        rhos = accumulate(local_steps * (rate / noise) ** 2 for noise in noises)
        return (rho + 2.0 * math.sqrt(rho * log) for rho in rhos)
    each = (step_epsilon(noise, rate, delta, decimals) for noise in noises)
    if accountant == "base":
        return accumulate(local_steps * one for one in each)
    if accountant == "advanced":
        return _advanced(each, local_steps, log)
    raise ValueError(f"no such accountant: {accountant}")


def _advanced(each: Iterator[float], local_steps: int, log: float) -> Iterator[float]:
    """Yield ``sqrt(2 ln(1/delta) sum e^2) + sum e (exp(e) - 1)``, over the steps of each round."""
    squares = drift = 0.0
    for one in each:
        squares += local_steps * one * one
        drift += local_steps * one * math.expm1(one)
        yield math.sqrt(2.0 * log * squares) + drift


def _moments(
    noises: list[float], rate: float, local_steps: int, log: float, epsilon: float
) -> Iterator[float]:
    """Yield the moments accountant's epsilon, or infinity where that is above the budget.

    An order a costs ``ln(1/delta)/(a - 1)`` whatever is released: those that cost the budget so are
    left out, which are all orders that are not whole where ``epsilon < ln(1/delta)/3.5``.
    """
    floors = {round(a): log / (a - 1.0) for a in TENSORFLOW_ORDERS if log / (a - 1.0) < epsilon}
    spent = dict(floors)
    for noise in noises:
        for order in spent:
            spent[order] += local_steps * _divergence(noise, rate, order)
        yield min(spent.values(), default=math.inf)


@lru_cache(maxsize=65536)
def _divergence(noise_multiplier: float, rate: float, order: int) -> float:
    """Return ``ln(sum_k C(a,k) (1-q)^(a-k) q^k e^((k^2-k)/(2 s^2)))/(a - 1)``, a a whole order."""
    k = np.arange(order + 1.0)
    binomials = gammaln(order + 1.0) - gammaln(k + 1.0) - gammaln(order - k + 1.0)
    chances = k * math.log(rate) + (order - k) * math.log1p(-rate)
    terms = binomials + chances + k * (k - 1.0) / (2.0 * noise_multiplier**2)
    largest = float(terms.max())
    return (largest + math.log(float(np.exp(terms - largest).sum()))) / (order - 1.0)


def _noises(policy: str, rounds: int, start: float, end: float, cycles: int) -> list[list[float]]:
    """Return the noise of each round: of stairs, one list for each width."""
    each = range(1, rounds + 1)
    if policy == "linear":
        return [[start - (start - end) * t / rounds for t in each]]
    if policy == "exponential":
        return [[start * (end / start) ** (t / rounds) for t in each]]
    if policy == "staircase":
        return [
            [start - (start - end) * (t // width) / (rounds // width) for t in each]
            for width in each
        ]
    if policy == "cyclic":
        length = -(-rounds // cycles)
        phases = [math.pi * ((t - 1) % length) / length for t in each]
        return [[start / 2.0 * (math.cos(phase) + 1.0) for phase in phases]]
    raise ValueError(f"no such policy: {policy}")
