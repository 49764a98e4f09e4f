"""The Gaussian mechanism: its classical calibration, its profile, its losses, its sensitivities."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

from hockeystick.accountants import delta as delta_of
from hockeystick.accountants import epsilon as epsilon_of
from hockeystick.calibration import gaussian_noise
from hockeystick.mechanisms import Gaussian, PrivateCovariance
from hockeystick.notions import GDP
from hockeystick.numerics.multiprecision import mp
from hockeystick.numerics.working_precision import working_digits
from hockeystick.results import Certified
from tests.claims.found import Found, between, proven, way


@way
def classical_delta(*, epsilon: float, delta: float, sensitivity: float = 1.0) -> Found:
    """Return the true delta of Gaussian noise ``sqrt(2 ln(1.25/delta))/epsilon``.

    The noise is in units of the sensitivity that it is meant for, of which the true one is a part.
    """
    noise = math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon / sensitivity
    # Round-off of the formula: four operations, and ln of a number far from 1.
    most = delta_of(Gaussian(noise * (1.0 - 1e-14)), epsilon=epsilon)
    least = delta_of(Gaussian(noise * (1.0 + 1e-14)), epsilon=epsilon)
    return between(float(least.lower), float(most), "delta")


@way
def plain_profile(*, mu: float, epsilon: float) -> float:
    """Return ``Phi(-eps/mu + mu/2) - e^eps Phi(-eps/mu - mu/2)`` as it is written."""
    cdf = NormalDist().cdf
    return cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * cdf(-epsilon / mu - mu / 2)


@way
def profile(*, mu: float, epsilon: float) -> Certified:
    """Return delta of mu-Gaussian differential privacy."""
    return delta_of(GDP(mu), epsilon=epsilon)


@way
def tail_of_the_loss(*, mu: float, delta: float) -> Found:
    """Return the probability that the loss is above the epsilon of one delta.

    The loss of mu-GDP is ``N(mu^2/2, mu^2)``.
    """
    answer = epsilon_of(GDP(mu), delta)
    with working_digits(30):
        least, most = (
            float(mp.ncdf(mp.mpf(mu) / 2 - mp.mpf(end) / mu))
            for end in (answer.upper, answer.lower)
        )
    return between(math.nextafter(least, 0.0), math.nextafter(most, 1.0), "probability")


@way
def iterated_profile(*, mu: float, size: int, epsilon: float) -> Found:
    """Return delta of ``1 - (1 - G_mu)^(o g)``: that of groups of g, by theorem 2.14 of Dong et al.

    It is the largest ``h(a) - e^epsilon a``, h the g-fold iteration of ``1 - G_mu``, which is
    concave. The maximum is searched for, with 50 digits; no use is made of what h comes to.
    """

    def normal(x: Any) -> Any:
        return mp.erfinv(2 * x - 1) * mp.sqrt(2)

    def gain(log_alpha: Any) -> Any:
        alpha = power = mp.exp(log_alpha)
        for _ in range(size):
            power = mp.ncdf(normal(power) + mu)
        return power - mp.exp(epsilon) * alpha

    with working_digits(50):
        least, most = mp.mpf(-30), mp.mpf(-1) / 100
        # A golden section: the gain is unimodal, and flat to the square of what is left.
        ratio = (mp.sqrt(5) - 1) / 2
        while most - least > mp.mpf(10) ** -13:
            first, second = most - ratio * (most - least), least + ratio * (most - least)
            least, most = (least, second) if gain(first) > gain(second) else (first, most)
        return proven(gain((least + most) / 2), "delta")


@way
def subgaussian_tail(*, rho: float, excess: float) -> float:
    """Return ``e^(-t^2/(4 rho))``, the tail of a loss above rho + t."""
    return math.exp(-excess * excess / (4.0 * rho))


@way
def gaussian_tail(*, rho: float, excess: float) -> Found:
    """Return the same of a Gaussian's loss, ``N(rho, 2 rho)``."""
    with working_digits(30):
        return proven(mp.ncdf(-mp.mpf(excess) / mp.sqrt(2 * mp.mpf(rho))), "probability")


@way
def renyi_as_printed(*, mu: float, order: float) -> float:
    """Return ``ln E[e^((1-a) Z)] / (1 - a)`` of the loss Z of mu-GDP, under the first data set.

    ``E[e^(s Z)] = e^(s mu^2/2 + s^2 mu^2/2)``.
    """
    power = 1.0 - order
    return (power + power * power) * mu * mu / 2.0 / (1.0 - order)


@way
def renyi(*, mu: float, order: float) -> Found:
    """Return the Renyi divergence of mu-GDP, ``a mu^2/2``."""
    with working_digits(30):
        return proven(mp.mpf(order) * mp.mpf(mu) ** 2 / 2, "divergence")


@way
def tradeoff_as_printed(*, epsilon: float, delta: float, alpha: float) -> float:
    """Return ``min{0, 1 - delta - e^eps a, (1 - delta - a) e^-eps}``."""
    lines = 1 - delta - math.exp(epsilon) * alpha, (1 - delta - alpha) * math.exp(-epsilon)
    return min(0.0, *lines)


@way
def tradeoff(*, epsilon: float, delta: float, alpha: float) -> Found:
    """Return the trade-off function of (epsilon, delta)-DP at one type I error."""
    with working_digits(30):
        eps, d, a = map(mp.mpf, (epsilon, delta, alpha))
        lines = 1 - d - mp.exp(eps) * a, (1 - d - a) * mp.exp(-eps)
        return proven(max(mp.zero, *lines), "type II error")


@way
def norm(*, radius: float) -> float:
    """Return the norm of a record at the radius, which the document takes for that of ``x^T x``."""
    return radius


@way
def norm_of_square(*, radius: float) -> Found:
    """Return the Frobenius norm of ``x^T x`` at that norm of x: its square."""
    return proven(mp.mpf(radius) ** 2, "sensitivity")


@way
def covariance_delta(*, epsilon: float, delta: float, radius: float, columns: int) -> Found:
    """Return the true delta of a covariance matrix with noise of deviation ``c p/epsilon``.

    ``c = sqrt(2 ln(1.25/delta))``, p the norm that records are clipped to.
    """
    noise = math.sqrt(2.0 * math.log(1.25 / delta)) / (epsilon * radius)
    most = delta_of(PrivateCovariance(noise * (1.0 - 1e-14), columns), epsilon=epsilon)
    least = delta_of(PrivateCovariance(noise * (1.0 + 1e-14), columns), epsilon=epsilon)
    return between(float(least.lower), float(most), "delta")


@way
def twice_the_classical_epsilon(*, noise_multiplier: float, delta: float) -> float:
    """Return twice the epsilon of the classical formula, ``sqrt(2 ln(1.25/delta))/sigma``."""
    return 2.0 * math.sqrt(2.0 * math.log(1.25 / delta)) / noise_multiplier


@way
def twice_the_epsilon(*, noise_multiplier: float, delta: float) -> float:
    """Return twice the epsilon of Gaussian noise."""
    return 2.0 * float(_epsilon(noise_multiplier, delta).estimate)


@way
def epsilon_at_twice_the_sensitivity(*, noise_multiplier: float, delta: float) -> Certified:
    """Return the epsilon of the same noise where the sensitivity is twice as large."""
    return _epsilon(noise_multiplier / 2.0, delta)


@way
def noise_for_replacement(*, epsilon: float, delta: float, variance: bool) -> float:
    """Return the ratio of the noise under replacement to that under addition and removal.

    A record moves a sum of vectors of norm 1 by 1 where it is added, and by 2 where it is replaced
    by its opposite. What is compared is the variance, or else the standard deviation.
    """
    added, replaced = (moved * gaussian_noise(epsilon, delta) for moved in (1.0, abs(1.0 - -1.0)))
    return (replaced / added) ** 2 if variance else replaced / added


@way
def attained_ratio(*, epsilon: float) -> float:
    """Return e^epsilon, how much likelier an output may be."""
    return math.exp(epsilon)


def _epsilon(noise_multiplier: float, delta: float) -> Certified:
    """Return the epsilon of one Gaussian release."""
    return epsilon_of(Gaussian(noise_multiplier), delta)
