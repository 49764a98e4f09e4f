"""Local differential privacy: randomized response among K, and what a definition must say."""

from __future__ import annotations

import math

from hockeystick.claims.found import Found, proven
from hockeystick.claims.registry import way
from hockeystick.results import Certified


@way
def error_as_printed(*, categories: int, epsilon: float, users: int) -> float:
    """Return ``(K - 2 + e^eps)/(n (e^eps - 1)^2)``."""
    return (categories - 2 + math.exp(epsilon)) / (users * math.expm1(epsilon) ** 2)


@way
def squared_error(*, categories: int, epsilon: float, users: int, share: float) -> Found:
    """Return the mean squared error of the estimated share of one category.

    The count of its reports is a sum of independent coins: a user in the category reports it with
    probability ``e^eps/(e^eps + K - 1)``, another one with ``1/(e^eps + K - 1)``.
    """
    from mpmath import mp

    with mp.workdps(30):
        ratio, h = mp.exp(mp.mpf(epsilon)), mp.mpf(str(share))
        true, other = ratio / (ratio + categories - 1), 1 / (ratio + categories - 1)
        variance = h * true * (1 - true) + (1 - h) * other * (1 - other)
        return proven(variance / (true - other) ** 2 / users, "squared error")


@way
def response_epsilon(*, categories: int, epsilon: float) -> Certified:
    """Return the pure epsilon of randomized response."""
    from hockeystick.accountants import epsilon as asked
    from hockeystick.mechanisms import RandomizedResponse

    return asked(RandomizedResponse(epsilon, categories), 0.0)


@way
def pointwise_delta(*, outputs: int) -> float:
    """Return the largest probability of one of so many outputs, all equally likely."""
    return 1.0 / outputs


@way
def disjoint_delta(*, outputs: int) -> Found:
    """Return delta of a report that is one of n outputs for one datum, of n others for another.

    Every single output has probability ``1/n <= e^eps 0 + 1/n``; all n together tell the data
    apart with certainty.
    """
    return Found(1.0, 1.0, "proven", "delta")
