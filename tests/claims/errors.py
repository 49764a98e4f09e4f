"""The largest of many independent Gaussian errors."""

from __future__ import annotations

import math

from hockeystick.numerics.multiprecision import mp
from hockeystick.numerics.working_precision import working_digits
from tests.claims.found import Found, proven, way


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
    with working_digits(30):
        ratio = mp.log(mp.mpf("1.25") / mp.mpf(str(delta)))
        sigma = mp.sqrt(2 * ratio * mp.mpf(squared_sensitivity)) / mp.mpf(epsilon)
        return proven(mp.erf(mp.mpf(bound) / (sigma * mp.sqrt(2))) ** queries, "probability")


@way
def success_of_the_bound(
    *, queries: int, squared_sensitivity: float, epsilon: float, delta: float, failure: float
) -> Found:
    """Return the same at the bound as printed."""
    bound = bound_as_printed(
        queries=queries,
        squared_sensitivity=squared_sensitivity,
        epsilon=epsilon,
        delta=delta,
        failure=failure,
    )
    found = success(
        queries=queries,
        squared_sensitivity=squared_sensitivity,
        epsilon=epsilon,
        delta=delta,
        bound=bound,
    )
    # The bound's own round-off moves the probability by less than this.
    return Found(found.lower * (1 - 1e-9), found.upper * (1 + 1e-9), "proven", found.quantity)
