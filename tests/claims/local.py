"""Local differential privacy, and metric privacy with Laplace noise on R^n."""

import math
from fractions import Fraction
from itertools import combinations_with_replacement as multisets
from typing import Any

from hockeystick.mechanisms import Gaussian
from hockeystick.numerics.multiprecision import mp
from tests.claims.found import Found, proven, way
from tests.claims.gaussian import delta_around


@way
def squared_error(*, categories: int, epsilon: float, users: int, share: float) -> Found:
    """Return the mean squared error of the estimated share of one category.

    The count of its reports is a sum of independent coins: a user in the category reports it with
    probability ``e^eps/(e^eps + K - 1)``, another one with ``1/(e^eps + K - 1)``.
    """
    ratio, h = mp.exp(mp.mpf(epsilon)), mp.mpf(str(share))
    true, other = ratio / (ratio + categories - 1), 1 / (ratio + categories - 1)
    variance = h * true * (1 - true) + (1 - h) * other * (1 - other)
    return proven(variance / (true - other) ** 2 / users, "squared error")


@way
def response_epsilon(*, categories: int, epsilon: float) -> Found:
    """Return the pure epsilon of the slides' algorithm, from the law of what it outputs.

    With chance ``K/(e^eps + K - 1)`` it outputs any category, equally likely, else the true one.
    """
    blind = categories / (mp.exp(mp.mpf(epsilon)) + categories - 1)
    laws = [
        [blind / categories + (1 - blind) * (output == true) for output in range(categories)]
        for true in range(categories)
    ]
    ratios = [p / q for one in laws for other in laws for p, q in zip(one, other, strict=True)]
    return proven(mp.log(max(ratios)), "epsilon")


@way
def pointwise_delta(*, outputs: int, shift: int, epsilon: float) -> float:
    """Return the most by which a single output breaks epsilon: ``max_z P(z) - e^eps Q(z)``.

    A report on one datum is one of n outputs, all equally likely, on the other one of n that are so
    many further.
    """
    return float(max(_excesses(outputs, shift, epsilon)))


@way
def event_delta(*, outputs: int, shift: int, epsilon: float) -> Found:
    """Return the most by which an event breaks epsilon: what is positive of them, added up."""
    excesses = _excesses(outputs, shift, epsilon)
    return proven(sum(one for one in excesses if one > 0), "delta")


@way
def histogram_sensitivity(*, users: int, categories: int, replaced: bool) -> Found:
    """Return the l_2 sensitivity of a histogram of shares among n, by trying all data sets.

    A record is left out, or replaced by another; n stays.
    """
    square, kinds = 0, range(categories)
    for others in multisets(kinds, users - 1):
        before = [others.count(kind) for kind in kinds]
        one = [[n + (kind == k) for k, n in enumerate(before)] for kind in kinds]
        for first in one:
            for second in one if replaced else [before]:
                gaps = zip(first, second, strict=True)
                square = max(square, sum((a - b) ** 2 for a, b in gaps))
    return proven(mp.sqrt(square) / users, "sensitivity")


@way
def average_delta(*, users: int, epsilon: float, delta: float) -> Found:
    """Return the true delta of one user's report where the average of n has a given variance.

    It is ``2 ln(1.25/delta)/(n epsilon^2)``, and a report that is between 0 and 1 has n times it.
    """
    variance = 2.0 * math.log(1.25 / delta) / (users * epsilon**2)
    return delta_around(Gaussian, math.sqrt(users * variance), epsilon)


def _excesses(outputs: int, shift: int, epsilon: float) -> list[Fraction]:
    chance, grown = Fraction(1, outputs), Fraction(math.exp(epsilon))
    return [chance * (z < outputs) - grown * chance * (z >= shift) for z in range(outputs + shift)]


@way
def private_scale_delta(
    *, dimension: int, noise_multiplier: float, ratio: float, distance: float
) -> Found:
    """Return a lower bound on delta at ``eps = n/nu`` where the noise scale is the update's norm.

    Of two updates, of norm 1 and ``ratio``, the first has noise of scale ``nu/n`` and lands further
    than t from itself with probability ``P(Gamma(n) > t n/nu)``. The second, at a distance from it,
    does so with at most ``P(Gamma(n) > (t - distance) n/(nu ratio))``. For ``ratio < 1`` the ratio
    of the two grows without end in t; here ``t = nu (1 + 3/sqrt(n))``.
    """
    n, rate = mp.mpf(dimension), dimension / mp.mpf(noise_multiplier)
    reach = n + 3 * mp.sqrt(n)
    near = (reach - mp.mpf(str(distance)) * rate) / mp.mpf(str(ratio))
    own = mp.gammainc(n, reach, mp.inf, regularized=True)
    other = mp.gammainc(n, near, mp.inf, regularized=True)
    lower = float(own - mp.exp(rate) * other)
    return Found(math.nextafter(lower, -math.inf), 1.0, "proven", "delta")


@way
def mean_norm(*, dimension: int, epsilon: float) -> Found:
    """Return the mean distance from the origin: ``int r^n e^(-eps r) / int r^(n-1) e^(-eps r)``."""
    rate = mp.mpf(epsilon)

    def moment(power: int) -> Any:
        return mp.quad(lambda r: r**power * mp.exp(-rate * r), [0, power / rate, mp.inf])

    return proven(moment(dimension) / moment(dimension - 1), "norm")
