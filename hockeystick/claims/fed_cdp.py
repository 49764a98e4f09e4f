"""The accountants of the Fed-CDP papers' time: what their tables were computed with.

Subsampled Gaussian noise on every step; the rate, and how many steps there are, is what the claims
differ in.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cache

from hockeystick.claims.found import Found
from hockeystick.claims.registry import way
from hockeystick.results import Certified


@way
def moments_epsilon(*, noise_multiplier: float, rate: float, steps: int, delta: float) -> Found:
    """Return what TensorFlow Privacy's moments accountant gave at the time."""
    from hockeystick.accountants.of_their_time import tensorflow_privacy_epsilon
    from hockeystick.mechanisms import Gaussian, PoissonSubsampled

    plan = PoissonSubsampled(Gaussian(noise_multiplier), rate) ** steps
    best = tensorflow_privacy_epsilon(plan, delta).upper
    return Found(best, best, "exact", "epsilon")


@way
def rounds_epsilon(*, noise_multiplier: float, rate: float, rounds: int, delta: float) -> Found:
    """Return the same with one step in each of the rounds that the table has."""
    return moments_epsilon(noise_multiplier=noise_multiplier, rate=rate, steps=rounds, delta=delta)


@way
def global_rate_epsilon(
    *,
    noise_multiplier: float,
    batch_size: int,
    clients: int,
    examples: int,
    steps: int,
    delta: float,
) -> Found:
    """Return the same at the rate of the text, ``B K_t/|D|``."""
    rate = batch_size * clients / examples
    return moments_epsilon(noise_multiplier=noise_multiplier, rate=rate, steps=steps, delta=delta)


@way
def certified_epsilon(
    *, noise_multiplier: float, rate: float, steps: int, delta: float
) -> Certified:
    """Return epsilon of Poisson-sampled Gaussian steps, exactly."""
    from hockeystick.accountants import epsilon
    from hockeystick.mechanisms import Gaussian, PoissonSubsampled

    return epsilon(PoissonSubsampled(Gaussian(noise_multiplier), rate) ** steps, delta)


@way
def round_of_the_budget(
    *,
    policy: str,
    rounds: int,
    start: float,
    end: float,
    rate: float,
    local_steps: int,
    delta: float,
    epsilon: float,
    near: str,
) -> float:
    """Return the round in which the moments accountant has spent epsilon; inf if none has.

    The noise of round t = 1, ..., T goes from ``start`` at 0 to ``end`` at T by a policy: "linear",
    "exponential", or "staircase"; or by "cyclic", cosines that go to nothing. How wide the stairs
    are, and how many cycles there are, is not published: the round nearest to ``near`` is returned
    of those that all widths, or all numbers of cycles, lead to. An order a costs
    ``ln(1/delta)/(a - 1)`` whatever is released: those that cost epsilon so are left out, which
    are all orders that are not whole where ``epsilon < ln(1/delta)/3.5``.
    """
    from hockeystick.accountants.of_their_time import TENSORFLOW_ORDERS

    floors = {a: -math.log(delta) / (a - 1.0) for a in TENSORFLOW_ORDERS}
    left = {round(a): epsilon - floor for a, floor in floors.items() if floor < epsilon}

    @cache
    def costs(noise: float) -> dict[int, float]:
        return {order: local_steps * _divergence(noise, rate, order) for order in left}

    found = [_spent_in(map(costs, noises), left) for noises in _noises(policy, rounds, start, end)]
    return min(found, key=lambda round_: abs(round_ - float(near)))


@way
def base_composition_epsilon(
    *, noise_multiplier: float, rate: float, steps: int, delta: float, decimals: int = 0
) -> float:
    """Return ``steps`` times one step's epsilon; decimals round the epsilon before sampling."""
    return steps * _step_epsilon(noise_multiplier, rate, delta, decimals)


@way
def advanced_composition_epsilon(
    *, noise_multiplier: float, rate: float, steps: int, delta: float, decimals: int = 0
) -> float:
    """Return ``sqrt(2 k ln(1/delta)) e + k e (exp(e) - 1)`` with one step's epsilon e."""
    one = _step_epsilon(noise_multiplier, rate, delta, decimals)
    root = math.sqrt(2.0 * steps * math.log(1.0 / delta))
    return root * one + steps * one * math.expm1(one)


@way
def concentrated_epsilon(
    *, noise_multiplier: float, rate: float, steps: int, delta: float
) -> float:
    """Return ``rho + 2 sqrt(rho ln(1/delta))`` with ``rho = steps rate^2 / sigma^2``.

    A sampled Gaussian step is taken to be ``rate^2/sigma^2``-zCDP, as Yu et al. 2019 have it for
    noise that is large enough; as zCDP it is not.
    """
    rho = steps * (rate / noise_multiplier) ** 2
    return rho + 2.0 * math.sqrt(rho * math.log(1.0 / delta))


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
    from mpmath import mp

    with mp.workdps(30):
        half, ratio = mp.mpf(coordinates) / 2, mp.mpf(other_norms) / norm
        small = mp.gammainc(half, 0, 3 * half, regularized=True)
        large = mp.gammainc(half, 0, 3 * half * ratio**2, regularized=True)
        lower = float(small - mp.exp(epsilon) * large)
    return Found(math.nextafter(lower, 0.0), 1.0, "proven", "delta")


def _step_epsilon(noise_multiplier: float, rate: float, delta: float, decimals: int) -> float:
    """Return the epsilon of one sampled step by the classical formula of the Gaussian mechanism."""
    plain = math.sqrt(2.0 * math.log(1.25 / delta)) / noise_multiplier
    return math.log1p(rate * math.expm1(round(plain, decimals) if decimals else plain))


def _divergence(noise_multiplier: float, rate: float, order: int) -> float:
    """Return ``ln(sum_k C(a,k) (1-q)^(a-k) q^k e^((k^2-k)/(2 s^2)))/(a - 1)``, a a whole order."""
    import numpy as np
    from scipy.special import gammaln

    k = np.arange(order + 1.0)
    binomials = gammaln(order + 1.0) - gammaln(k + 1.0) - gammaln(order - k + 1.0)
    chances = k * math.log(rate) + (order - k) * math.log1p(-rate)
    terms = binomials + chances + k * (k - 1.0) / (2.0 * noise_multiplier**2)
    largest = float(terms.max())
    return (largest + math.log(float(np.exp(terms - largest).sum()))) / (order - 1.0)


def _spent_in(costs: Iterable[Mapping[int, float]], budget: Mapping[int, float]) -> float:
    """Return the round in which no order has anything left of its budget; inf if there is none."""
    left = dict(budget)
    for done, cost in enumerate(costs, start=1):
        left = {order: rest - cost[order] for order, rest in left.items()}
        if all(rest <= 0.0 for rest in left.values()):
            return float(done)
    return math.inf


def _noises(policy: str, rounds: int, start: float, end: float) -> list[list[float]]:
    """Return the noise of each round: one list for each number that is not published."""
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
        lengths = dict.fromkeys(-(-rounds // cycles) for cycles in each)
        return [
            [start / 2.0 * (math.cos(math.pi * ((t - 1) % length) / length) + 1.0) for t in each]
            for length in lengths
        ]
    raise ValueError(f"no such policy: {policy}")
