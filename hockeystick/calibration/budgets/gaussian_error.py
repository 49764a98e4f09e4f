"""How large the largest error of many independent Gaussian errors is: exactly, and by a union."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from hockeystick import _validate
from hockeystick._validate import Domain, whole_numbers
from hockeystick.numerics import largest_reading, least_reading
from hockeystick.numerics.rounding import DIGITS, as_mpf, evaluated_down, evaluated_up
from hockeystick.numerics.working_precision import working_digits

if TYPE_CHECKING:
    from mpmath import mpf

_SIGMA: Final = Domain(symbol="sigma", low=0, high=1e150, typical=(0.1, 1000))
_COORDINATES: Final = whole_numbers("K", 1, (1, 10**6))
_FAILURE: Final = Domain(symbol="beta", low=1e-200, high=1, high_open=True, typical=(1e-6, 0.1))
_ERROR: Final = Domain(symbol="t", low=0, high=math.inf, typical=(0.1, 1000))
# Steps of Newton's method from a float's accuracy, and the slack that is then proven to be enough.
_STEPS: Final = 4
_SLACK: Final = 30
# No smaller error than this many standard deviations away makes a difference to a float.
_MOST_DEVIATIONS: Final = 1000


def max_error_quantile(sigma: float, coordinates: int, failure: float) -> float:
    """Return what the largest of K independent Gaussian errors exceeds with probability beta.

    ``sigma PhiInv((1 + (1 - beta)^(1/K)) / 2)``, the quantile of the L-infinity norm of N(0,
    sigma^2 I_K): the error of a Gaussian mechanism on K queries at once.

    Guarantees:
        Exact, rounded up: with probability at least 1 - beta no error is larger.

    Edge cases:
        sigma = 0 has no error. beta near 1 gives the smallest values.

    Args:
        sigma: The standard deviation of each error, in [0, 1e150]: noise multiplier times
            sensitivity.
        coordinates: The number K of errors, an integer >= 1.
        failure: The probability beta of a larger error, in [1e-200, 1).

    Returns:
        The quantile, an upper bound of it by a unit in the last place or two.

    Raises:
        ParameterError: If a parameter is outside its domain.

    References:
        The usual bound is ``max_error_union_bound``. Teaching material gives it as
        ``sqrt(2 ln(1.25/delta) ln(K/beta)) Delta / epsilon``, for the classical noise
        ``sigma = sqrt(2 ln(1.25/delta)) Delta / epsilon``; that lacks a factor sqrt(2) and, errors
        having two signs, a 2 inside the logarithm, and is far below the quantile: with K = 10^4,
        ``Delta = sqrt(2)``, epsilon = 1, delta = 1e-9 and beta = 0.01 it is 34.02, where the
        quantile is 44.77; errors stay below 34 with probability 0.130, not 0.99.

    Example:
        >>> import hockeystick as hs
        >>> quantile = hs.calibration.max_error_quantile
        >>> print(f"{quantile(9.15345, coordinates=10_000, failure=0.01):.3f}")
        44.766
    """
    spread = _validate.real("sigma", sigma, _SIGMA)
    count = _validate.count("coordinates", coordinates, _COORDINATES)
    beta = _validate.real("failure", failure, _FAILURE)
    if spread == 0.0:
        return 0.0
    from hockeystick.numerics.multiprecision import mp

    with working_digits(DIGITS):
        share = -mp.expm1(mp.log1p(-as_mpf(least_reading(beta))) / count)
        return evaluated_up(mp.sqrt(2) * as_mpf(largest_reading(spread)) * _inverse_erfc(share))


def max_error_probability(error: float, sigma: float, coordinates: int) -> float:
    """Return with what probability none of K independent Gaussian errors is larger than t.

    ``(2 Phi(t/sigma) - 1)^K``.

    Guarantees:
        Exact, rounded down.

    Edge cases:
        sigma = 0 gives 1; t = 0 gives 0 for every other sigma; t = inf gives 1.

    Args:
        error: The error t, in [0, inf].
        sigma: The standard deviation of each error, in [0, 1e150].
        coordinates: The number K of errors, an integer >= 1.

    Returns:
        The probability, a lower bound of it by a unit in the last place or two.

    Raises:
        ParameterError: If a parameter is outside its domain.

    References:
        The distribution of the largest of independent variables; see ``max_error_quantile`` for
        what is often printed instead.

    Example:
        >>> import hockeystick as hs
        >>> print(
        ...     f"{hs.calibration.max_error_probability(34, sigma=9.15345, coordinates=10_000):.3f}"
        ... )
        0.130
    """
    limit = _validate.real("error", error, _ERROR)
    spread = _validate.real("sigma", sigma, _SIGMA)
    count = _validate.count("coordinates", coordinates, _COORDINATES)
    if spread == 0.0 or limit == math.inf:
        return 1.0
    if limit == 0.0:
        return 0.0
    from hockeystick.numerics.multiprecision import mp

    with working_digits(DIGITS):
        ratio = as_mpf(least_reading(limit)) / as_mpf(largest_reading(spread))
        place = min(ratio / mp.sqrt(2), mp.mpf(_MOST_DEVIATIONS))
        # Of a small place erf keeps the digits, of a large one erfc.
        log_one = mp.log(mp.erf(place)) if place < 1 else mp.log1p(-mp.erfc(place))
        return evaluated_down(mp.exp(count * log_one))


def max_error_union_bound(sigma: float, coordinates: int, failure: float) -> float:
    """Return a bound of the largest of K Gaussian errors, which need not be independent.

    ``sigma sqrt(2 ln(2 K / beta))``, from the tail bound ``P(|N| > t) <= 2 exp(-t^2/2)`` and a
    union over coordinates.

    Guarantees:
        An upper bound, rounded up: with probability at least 1 - beta no error is larger. It is
        more than ``max_error_quantile`` says of independent errors.

    Edge cases:
        sigma = 0 has no error.

    Args:
        sigma: The standard deviation of each error, in [0, 1e150].
        coordinates: The number K of errors, an integer >= 1.
        failure: The probability beta, in [1e-200, 1).

    Returns:
        The bound.

    Raises:
        ParameterError: If a parameter is outside its domain.

    References:
        Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014 (the proof
        idea; the constants are those above).

    Example:
        >>> import hockeystick as hs
        >>> bound = hs.calibration.max_error_union_bound
        >>> print(f"{bound(9.15345, coordinates=10_000, failure=0.01):.2f}")
        49.31
    """
    spread = _validate.real("sigma", sigma, _SIGMA)
    count = _validate.count("coordinates", coordinates, _COORDINATES)
    beta = _validate.real("failure", failure, _FAILURE)
    if spread == 0.0:
        return 0.0
    from hockeystick.numerics.multiprecision import mp

    with working_digits(DIGITS):
        log_share = mp.log(2 * count / as_mpf(least_reading(beta)))
        return evaluated_up(as_mpf(largest_reading(spread)) * mp.sqrt(2 * log_share))


def _inverse_erfc(share: mpf) -> mpf:
    """Return the x at which ``erfc(x)`` is a share in (0, 1), proven to be above it."""
    from scipy.special import erfcinv

    from hockeystick.numerics.multiprecision import mp

    x = mp.mpf(float(erfcinv(float(share))))
    for _ in range(_STEPS):
        tail = mp.erfc(x)
        # The logarithm of the tail is concave, and nearly a parabola.
        x += mp.log(tail / share) * tail * mp.sqrt(mp.pi) / (2 * mp.exp(-x * x))
    slack = mp.mpf(10) ** -_SLACK
    while mp.erfc(x * (1 + slack)) > share:
        slack *= 10
    return x * (1 + slack)
