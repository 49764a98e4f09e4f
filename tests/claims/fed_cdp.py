"""The accountants of the Fed-CDP papers' time, and when noise that decays has spent a budget."""

import math
from collections.abc import Iterator
from functools import lru_cache, reduce
from itertools import accumulate, groupby
from operator import matmul
from typing import Any

import numpy as np
from scipy.special import gammaln

from hockeystick.accountants import epsilon as epsilon_of
from hockeystick.conversions.published.of_their_time import (
    TENSORFLOW_ORDERS,
    tensorflow_privacy_epsilon,
)
from hockeystick.mechanisms import Gaussian, Mechanism, PoissonSubsampled
from hockeystick.numerics.multiprecision import mp
from hockeystick.results import Certified
from tests.claims.found import Found, proven, way


@way
def moments_epsilon(*, noise_multiplier: float, rate: float, steps: int, delta: float) -> Found:
    """Return what TensorFlow Privacy's moments accountant gave at the time."""
    plan = PoissonSubsampled(Gaussian(noise_multiplier), rate) ** steps
    best = tensorflow_privacy_epsilon(plan, delta).upper
    return Found(best, best, "exact", "epsilon")


@way
def global_round_divergence(
    *, noise_multiplier: float, client_rate: float, rate: float, local_steps: int, order: int
) -> Found:
    """Return the Renyi divergence of a round whose steps sample from all data independently."""
    both = mp.mpf(str(client_rate)) * mp.mpf(str(rate))
    moment = _sampled_moment(both, noise_multiplier, order) ** local_steps
    return proven(mp.log(moment) / (order - 1), "divergence")


@way
def local_round_divergence(
    *, noise_multiplier: float, client_rate: float, rate: float, local_steps: int, order: int
) -> Found:
    """Return the same where the clients of a round are sampled first, and their examples then.

    The record's client is in the round or not, for all of its steps: with it the law is a mixture,
    of which the moments are those of the steps of a client that is.
    """
    share, local = mp.mpf(str(client_rate)), mp.mpf(str(rate))
    moment = mp.fsum(
        mp.binomial(order, j)
        * (1 - share) ** (order - j)
        * share**j
        * _sampled_moment(local, noise_multiplier, j) ** local_steps
        for j in range(order + 1)
    )
    return proven(mp.log(moment) / (order - 1), "divergence")


@way
def base_composition_epsilon(
    *,
    noise_multiplier: float,
    rate: float,
    steps: int,
    delta: float,
    decimals: int = 0,
    decimals_of_the_sum: int = 0,
) -> float:
    """Return ``steps`` times one step's epsilon; decimals round the epsilon before sampling."""
    whole = steps * step_epsilon(noise_multiplier, rate, delta, decimals)
    return round(whole, decimals_of_the_sum) if decimals_of_the_sum else whole


@way
def advanced_composition_epsilon(
    *, noise_multiplier: float, rate: float, steps: int, delta: float, decimals: int = 0
) -> float:
    """Return ``sqrt(2 k ln(1/delta)) e + k e (exp(e) - 1)`` with one step's epsilon e."""
    one = step_epsilon(noise_multiplier, rate, delta, decimals)
    root = math.sqrt(2.0 * steps * math.log(1.0 / delta))
    return root * one + steps * one * math.expm1(one)


@way
def largest_norm_delta(
    *, epsilon: float, norm: float, other_norms: float, coordinates: int
) -> Found:
    """Return a lower bound on delta where the noise is scaled by the largest norm in the batch.

    Without the record of the largest norm the noise has a standard deviation that is
    ``other_norms/norm`` times as large, in each of d coordinates. In the ball around its mean whose
    squared radius is 3 d variances of the smaller noise, it has ``F_d(3 d)``, F_d the distribution
    function of chi-squared; with the record the ball has at most ``F_d(3 d (other_norms/norm)^2)``,
    wherever the mean is, for a centred ball has the most (Anderson 1955).
    """
    half, ratio = mp.mpf(coordinates) / 2, mp.mpf(other_norms) / norm
    small = mp.gammainc(half, 0, 3 * half, regularized=True)
    large = mp.gammainc(half, 0, 3 * half * ratio**2, regularized=True)
    lower = float(small - mp.exp(epsilon) * large)
    return Found(math.nextafter(lower, 0.0), 1.0, "proven", "delta")


def step_epsilon(noise_multiplier: float, rate: float, delta: float, decimals: int) -> float:
    """Return the epsilon of one sampled step by the classical formula of the Gaussian mechanism."""
    plain = math.sqrt(2.0 * math.log(1.25 / delta)) / noise_multiplier
    return math.log1p(rate * math.expm1(round(plain, decimals) if decimals else plain))


def _sampled_moment(rate: Any, noise_multiplier: float, order: int) -> Any:
    """Return ``E[(P/Q)^a]`` of a sampled Gaussian step, in mpmath: a binomial sum."""
    square = mp.mpf(noise_multiplier) ** 2
    return mp.fsum(
        mp.binomial(order, k)
        * (1 - rate) ** (order - k)
        * rate**k
        * mp.exp(k * (k - 1) / (2 * square))
        for k in range(order + 1)
    )


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
