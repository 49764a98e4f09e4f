"""Numbers of events and of mechanisms, rounded to the side that promises less."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Final

from hockeystick.mechanisms import tuning
from hockeystick.numerics import largest_reading, least_reading
from hockeystick.numerics.multiprecision import mp
from hockeystick.numerics.rounding import DIGITS, as_mpf, evaluated_down, evaluated_up, float_up
from hockeystick.numerics.working_precision import working_digits

# Covers the few roundings of a chance.
_OUTWARD: Final = 1.0 + 2.0**-46

# More than what the search for a given mean is off.
_MORE_RUNS: Final = 1.0 + 1e-11


def half(value: float) -> float:
    """Return half a float >= 0, rounded down."""
    found = value / 2.0
    return found if 2.0 * found <= value else math.nextafter(found, 0.0)


def double(value: float) -> float:
    """Return twice a float >= 0, the largest float where none holds it."""
    return min(2.0 * value, math.nextafter(math.inf, 0.0)) if value < math.inf else value


def inverse_down(value: float) -> float:
    """Return 1/x of a float x > 0, rounded down."""
    if value == math.inf:
        return 0.0
    return _float_down(1 / Fraction(value))


def inverse_up(value: float) -> float:
    """Return 1/x of a float x in (0, inf), rounded up."""
    return float_up(1 / Fraction(value))


def chance_up(rate: float | Fraction) -> float:
    """Return a rate in [0, 1] as a float, rounded up."""
    return rate if isinstance(rate, float) else float_up(rate)


def chance_of_any(size: int, examples: int) -> float:
    """Return the chance to be drawn in any of some draws with replacement, rounded up."""
    if examples == 1:
        return 1.0
    return min(-math.expm1(size * math.log1p(-1.0 / examples)) * _OUTWARD, 1.0)


def together(noises: Iterable[tuple[float, int]]) -> float:
    """Return the noise of several Gaussians as one, ``(sum n / z^2)^(-1/2)``, rounded down."""
    listed = list(noises)
    if [runs for _, runs in listed] == [1]:
        return listed[0][0]
    if any(noise == 0.0 for noise, _ in listed):
        return 0.0
    finite = [(noise, runs) for noise, runs in listed if noise < math.inf]
    if not finite:
        return math.inf
    with working_digits(DIGITS):
        total = sum((runs / least_reading(noise) ** 2 for noise, runs in finite), Fraction(0))
        return evaluated_down(1 / mp.sqrt(as_mpf(total)))


def epsilon_of_response(chance: float, buckets: int) -> float:
    """Return ``ln(1 + k (1-p) / p)``, rounded up: with chance p the answer is a random one of k."""
    least = least_reading(chance)
    if least <= 0:
        return math.inf
    if chance == 1.0:
        return 0.0
    with working_digits(DIGITS):
        return evaluated_up(mp.log1p(as_mpf(buckets * (1 - least) / least)))


def chance_of_response(epsilon: float, categories: int) -> float:
    """Return ``p = k / (e^epsilon + k - 1)``, rounded down."""
    if epsilon == 0.0:
        return 1.0
    if epsilon == math.inf:
        return 0.0
    with working_digits(DIGITS):
        odds = mp.exp(as_mpf(largest_reading(epsilon)))
        return evaluated_down(categories / (odds + categories - 1))


def line_up(xi: float, rho: float, order: float) -> float:
    """Return ``xi + rho alpha``, rounded up."""
    if math.inf in (xi, rho):
        return math.inf
    return float_up(largest_reading(xi) + largest_reading(rho) * Fraction(order))


def runs(mean: float, shape: float) -> tuning.TruncatedNegativeBinomial:
    """Return a truncated negative binomial distribution whose mean is no less than this."""
    if shape != 1.0:
        return tuning.TruncatedNegativeBinomial.of_mean(mean * _MORE_RUNS, shape)
    # Checks the mean too.
    found = tuning.TruncatedNegativeBinomial.of_mean(mean, shape)
    return tuning.TruncatedNegativeBinomial(shape, min(found.gamma, inverse_down(float(mean))))


def mean_up(distribution: tuning.TruncatedNegativeBinomial) -> float:
    """Return the mean number of runs, rounded up."""
    if distribution.eta == 1.0:
        return inverse_up(distribution.gamma)
    return distribution.expected * _MORE_RUNS


def _float_down(value: Fraction) -> float:
    """Return the largest float that is not above an exact number >= 0."""
    try:
        nearest = float(value)
    except OverflowError:
        return math.nextafter(math.inf, 0.0)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, 0.0)
