"""The accountants of the Fed-CDP papers' time: what their tables were computed with.

Subsampled Gaussian noise on every step; the rate, and how many steps there are, is what the claims
differ in.
"""

from __future__ import annotations

import math
from typing import Any

from hockeystick.accountants import epsilon as epsilon_of
from hockeystick.conversions.published.of_their_time import tensorflow_privacy_epsilon
from hockeystick.mechanisms import Gaussian, MultivariateLaplace, PoissonSubsampled
from hockeystick.numerics.multiprecision import mp
from hockeystick.numerics.working_precision import working_digits
from hockeystick.results import Certified
from tests.claims.found import Found, proven, way


@way
def moments_epsilon(*, noise_multiplier: float, rate: float, steps: int, delta: float) -> Found:
    """Return what TensorFlow Privacy's moments accountant gave at the time."""
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
    return epsilon_of(PoissonSubsampled(Gaussian(noise_multiplier), rate) ** steps, delta)


@way
def client_epsilon(
    *, noise_multiplier: float, local_steps: int, client_rate: float, rounds: int, delta: float
) -> Certified:
    """Return what adding or removing a client costs, to an adversary who sees the clients' updates.

    The noise is on each batch's average, which all of the client's examples are in: a round of L
    steps is a Gaussian of multiplier ``sigma/sqrt(L)``, and clients are sampled.
    """
    whole = Gaussian(noise_multiplier / math.sqrt(local_steps))
    return epsilon_of(PoissonSubsampled(whole, client_rate) ** rounds, delta)


@way
def global_round_divergence(
    *, noise_multiplier: float, client_rate: float, rate: float, local_steps: int, order: int
) -> Found:
    """Return the Renyi divergence of a round whose steps sample from all data independently."""
    with working_digits(30):
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
    with working_digits(30):
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
def density_epsilon(
    *, epsilon: float, batch_size: int, sensitivity: float, coordinates: int
) -> Certified:
    """Return the pure epsilon of noise of density ``e^(-beta |x|)``, ``beta = B epsilon/(2 S)``.

    The solutions on neighbouring batches differ by up to ``2 S/B``.
    """
    beta = batch_size * epsilon / (2.0 * sensitivity)
    return epsilon_of(
        MultivariateLaplace(1.0 / beta / (2.0 * sensitivity / batch_size), coordinates), 0
    )


@way
def gaussian_density_epsilon(*, epsilon: float, batch_size: int, sensitivity: float) -> Certified:
    """Return the pure epsilon of Gaussian noise of deviation ``1/beta``."""
    beta = batch_size * epsilon / (2.0 * sensitivity)
    return epsilon_of(Gaussian(1.0 / beta / (2.0 * sensitivity / batch_size)), 0.0)


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
    with working_digits(30):
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
