"""Gaussian noise: calibration, profile, losses, errors; concentrated privacy; two queries."""

import math
from collections.abc import Callable
from typing import Any

from hockeystick.accountants import delta as delta_of
from hockeystick.accountants import epsilon as epsilon_of
from hockeystick.calibration import clipping_noise, joint_noise
from hockeystick.mechanisms import Gaussian, Mechanism, PrivateCovariance
from hockeystick.notions import GDP
from hockeystick.numerics.multiprecision import mp, working_digits
from hockeystick.numerics.roots import increasing_root
from hockeystick.results import Certified
from tests.claims.found import Found, proven, way


@way
def classical_delta(*, epsilon: float, delta: float, sensitivity: float = 1.0) -> Found:
    """Return the true delta of Gaussian noise ``sqrt(2 ln(1.25/delta))/epsilon``.

    The noise is in units of the sensitivity that it is meant for, of which the true one is a part.
    """
    noise = math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon / sensitivity
    return delta_around(Gaussian, noise, epsilon)


def delta_around(made: Callable[[float], Mechanism], noise: float, epsilon: float) -> Found:
    """Return delta, whatever round-off the noise has: that of few operations and a logarithm."""
    least, most = (
        delta_of(made(noise * (1.0 + part)), epsilon=epsilon) for part in (1e-14, -1e-14)
    )
    return Found(float(least.lower), float(most), "proven", "delta")


@way
def tail_of_the_loss(*, mu: float, delta: float) -> Found:
    """Return the probability that the loss is above the epsilon of one delta.

    The loss of mu-GDP is ``N(mu^2/2, mu^2)``.
    """
    answer = epsilon_of(GDP(mu), delta)
    least, most = (
        float(mp.ncdf(mp.mpf(mu) / 2 - mp.mpf(end) / mu)) for end in (answer.upper, answer.lower)
    )
    ends = math.nextafter(least, 0.0), math.nextafter(most, 1.0)
    return Found(*ends, "proven", "probability")


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
def covariance_delta(*, epsilon: float, delta: float, radius: float, columns: int) -> Found:
    """Return the true delta of a covariance matrix with noise of deviation ``c p/epsilon``.

    ``c = sqrt(2 ln(1.25/delta))``, p the norm that records are clipped to.
    """
    noise = math.sqrt(2.0 * math.log(1.25 / delta)) / (epsilon * radius)
    return delta_around(lambda size: PrivateCovariance(size, columns), noise, epsilon)


@way
def divergence_of_responses(*, epsilon: float, runs: int, order: float) -> Found:
    """Return the order-a divergence of k randomized responses, a sum over what they can say."""
    a, odds = mp.mpf(order), mp.exp(mp.mpf(epsilon))
    true, false = odds / (1 + odds), 1 / (1 + odds)

    def chance(yes: int, first: Any, second: Any) -> Any:
        return first**yes * second ** (runs - yes)

    moment = mp.fsum(
        mp.binomial(runs, k) * chance(k, true, false) ** a * chance(k, false, true) ** (1 - a)
        for k in range(runs + 1)
    )
    return proven(mp.log(moment) / (a - 1), "divergence")


@way
def group_divergence(*, noise_multiplier: float, size: int, order: float) -> Found:
    """Return the order-a divergence of Gaussians at distance g: an integral of ``p^a q^(1-a)``.

    The trapezoid rule on the line has an error that falls as ``e^(-2 (pi sigma/h)^2)``.
    """
    with working_digits(40):
        a, sigma = mp.mpf(order), mp.mpf(noise_multiplier)
        step, peak = sigma / 8, a * size
        points = [peak + step * k for k in range(-120, 121)]

        def logarithm(x: Any) -> Any:
            near, far = (x - size) ** 2, x**2
            return -(a * near + (1 - a) * far) / (2 * sigma**2)

        total = step * mp.fsum(mp.exp(logarithm(x)) for x in points)
        return proven(mp.log(total / (sigma * mp.sqrt(2 * mp.pi))) / (a - 1), "divergence")


@way
def bound_as_printed(
    *, queries: int, squared_sensitivity: float, epsilon: float, delta: float, failure: float
) -> float:
    """Return ``sqrt(2 ln(1.25/delta) ln(K/failure)) D/eps``."""
    both = math.log(1.25 / delta) * math.log(queries / failure)
    return math.sqrt(2.0 * squared_sensitivity * both) / epsilon


@way
def success(
    *, queries: int, squared_sensitivity: float, epsilon: float, delta: float, bound: float
) -> Found:
    """Return the probability that no error is beyond a bound, with the classical noise.

    The errors are independent: ``erf(bound/(sigma sqrt(2)))^K``.
    """
    ratio = mp.log(mp.mpf("1.25") / mp.mpf(str(delta)))
    sigma = mp.sqrt(2 * ratio * mp.mpf(squared_sensitivity)) / mp.mpf(epsilon)
    return proven(mp.erf(mp.mpf(bound) / (sigma * mp.sqrt(2))) ** queries, "probability")


@way
def success_of_the_bound(*, failure: float, **given: Any) -> Found:
    """Return the same at the bound as printed."""
    found = success(bound=bound_as_printed(failure=failure, **given), **given)
    # The bound's own round-off moves the probability by less than this.
    return Found(found.lower * (1 - 1e-9), found.upper * (1 + 1e-9), "proven", found.quantity)


@way
def query_noise(*, inflation: float) -> float:
    """Return nu_q/nu where the gradients' noise is inflated by so much."""
    return joint_noise(1.0, inflation=inflation).query


@way
def query_over_bit_noise(*, inflation: float) -> float:
    """Return the ratio of the query's noise to that of a clipped bit at the same privacy.

    The bit, in {-1/2, 1/2}, has sensitivity 1/2, the query 1. ``clipping_noise`` tells how much
    noise the gradients need beside a bit's; half the query's noise needs the same.
    """

    def short(log_excess: float) -> float:
        return inflation - clipping_noise(1.0, 0.5 + math.exp(log_excess))

    query = query_noise(inflation=inflation)
    bit = 0.5 + math.exp(increasing_root(short, math.log(query), tolerance=1e-12))
    return query / bit


@way
def joint_epsilon(
    *, noise_multiplier: float, delta: float, inflation: float, algorithm: bool = False
) -> Certified:
    """Return the epsilon of gradients and query; as the algorithm has it, both with nu_g."""
    both = joint_noise(noise_multiplier, inflation=inflation)
    query = both.gradient if algorithm else both.query
    return epsilon_of(Gaussian(both.gradient) @ Gaussian(query), delta)
