"""What the losses of a mechanism's runs say of the notions that add up: the one place that asks.

The least mu of one run of a known loss is where its trade-off function needs the most:

- Laplace noise with ``e = 1/b``: ``f(alpha) = exp(-e) / (4 alpha)`` between ``exp(-e)/2`` and 1/2,
  and f is linear outside, to (0, 1) and (1, 0), where ``G_mu``, which is convex, is below it as
  soon as it is at the other end. With ``alpha = Phi(-x)`` and ``f = Phi(-y)`` the least mu is the
  largest ``x + y`` with ``ln Phi(-x) + ln Phi(-y) >= -e - ln 4``. As ``ln Phi`` is concave these
  (x, y) are a convex set, and a symmetric one: it has ``((x + y)/2, (x + y)/2)`` as well. So
  x = y and

      mu = -2 Phi^-1(exp(-e/2) / 2).

- Finitely many losses: f is a polygon, and ``G_mu`` is below it where it is below its vertices, so
  that mu is the largest ``Phi^-1(P[L >= l]) - Phi^-1(Q[L >= l])`` over all losses l.

A smaller mu has ``G_mu > f`` somewhere. On a sample both directions have at most the mu of the run,
as hockey-stick divergences are jointly convex.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from hockeystick.accountants.base import composition_of
from hockeystick.conversions.theorems import laplace_mu, liu_mu
from hockeystick.mechanisms import Mechanism
from hockeystick.numerics import decimal, largest_reading, least_reading
from hockeystick.numerics.working_precision import working_digits
from hockeystick.privacy_loss import (
    AtomicLoss,
    CellLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    LaplaceLoss,
    PrivacyLoss,
    RandomizedResponseLoss,
    RandomizedResponsePairLoss,
    Terms,
    WideDiscreteGaussianLoss,
)

if TYPE_CHECKING:
    from mpmath import mpf

# Losses that attain the rho of a normal distribution, and those whose rho is D_1.
NORMAL: Final = (GaussianLoss, DiscreteGaussianLoss, WideDiscreteGaussianLoss)
_LARGEST_AT_ORDER_1: Final = (LaplaceLoss, DiscreteLaplaceLoss, RandomizedResponsePairLoss)

_DIGITS: Final = 50
# The error of a quantile relative to 1 and its size, which is verified.
_QUANTILE: Final = 1e-30
# Far more than the error of a quantile in floats, relative to its size.
_NEAR: Final = 1e-9
# The most vertices, and the most that are computed in many digits.
_MOST_VERTICES: Final = 2000
_MOST_EXACT: Final = 40
# Covers readings of the parameters.
_OUTWARD: Final = 1.0 + 2.0**-47
# Losses beyond which vertices are not computed.
_LARGEST: Final = 1e6

_OfLoss: TypeAlias = Callable[[PrivacyLoss], Fraction | None]


class Amount(NamedTuple):
    """What adds up over runs, an upper bound; exact where all of them attain it.

    ``losses`` are the types of the losses that it is of.
    """

    value: Fraction
    exact: bool
    losses: frozenset[type[PrivacyLoss]]


def mu_square_of(mechanism: Mechanism) -> Amount | None:
    """Return ``sum mu_i^2`` of Gaussians that dominate the runs, in the worst direction and place.

    It is exact where all are Gaussian, or where a single run has its own least mu. A bounded loss
    has the mu of its largest absolute value. None where a run has no mu.

    Raises:
        UnsupportedError: If nothing is known of a part of it.
    """
    directions = composition_of(mechanism, "f-dp").directions
    found = _worst(directions, _mu_square, (GaussianLoss,))
    if found is None or found.exact:
        return found
    one_run = all(sum(count for _, count in terms) <= 1 for terms in directions)
    return found._replace(
        exact=one_run and all(is_least(loss) for terms in directions for loss, _ in terms)
    )


def rho_of(mechanism: Mechanism, omega: float = math.inf) -> Amount | None:
    """Return the sum of the least known rhos with ``D_alpha <= rho alpha`` for alpha below omega.

    It is exact where all runs attain theirs at order 1. None where a run has no such line.

    Raises:
        UnsupportedError: If nothing is known of a part of it.
    """
    directions = composition_of(mechanism, "zcdp").directions
    return _worst(directions, partial(_rho, omega=omega), (*NORMAL, *_LARGEST_AT_ORDER_1))


def reveals(mechanism: Mechanism) -> bool:
    """Return whether a run releases something without noise, at least with some probability."""
    directions = composition_of(mechanism, "zcdp").directions
    return any(any(loss.infinity_mass) for terms in directions for loss, _ in terms)


def root_up(square: Fraction) -> float:
    """Return a float whose square is no less than an exact number >= 0, however it is read."""
    half = (square.numerator.bit_length() - square.denominator.bit_length()) // 2
    try:
        root = math.ldexp(math.sqrt(square / Fraction(4) ** half), half)
    except OverflowError:
        return math.inf
    while root < math.inf and least_reading(root) ** 2 < square:
        root = math.nextafter(root, math.inf)
    return root


def above(value: Fraction, in_decimals: Fraction | None = None) -> float:
    """Return the least float that is no less than an exact number >= 0, however it is read.

    Args:
        value: The number.
        in_decimals: What it is where floats are read as the decimals that they print as; by
            default the same. Of two readings of a sum, each is compared with its own: ``16 * 0.2``
            is 3.2 in both, though one of the floats is above its decimal.
    """
    as_decimal = value if in_decimals is None else in_decimals
    try:
        found = float(min(value, as_decimal))
    except OverflowError:
        return math.inf
    while found < math.inf and (Fraction(found) < value or decimal(found) < as_decimal):
        found = math.nextafter(found, math.inf)
    return found


def _worst(
    directions: Sequence[Terms], of_loss: _OfLoss, attained: tuple[type[PrivacyLoss], ...]
) -> Amount | None:
    """Return the largest sum over the runs, None where one of them is not known.

    It is exact where the runs are of the losses that attain what is summed.
    """
    sums = []
    for terms in directions:
        values = [(of_loss(loss), count) for loss, count in terms]
        if any(value is None for value, _ in values):
            return None
        sums.append(sum((count * value for value, count in values if value), Fraction(0)))
    losses = frozenset(type(loss) for terms in directions for loss, _ in terms)
    return Amount(max(sums), all(issubclass(one, attained) for one in losses), losses)


def _mu_square(loss: PrivacyLoss) -> Fraction | None:
    square = loss.dominating_mu_squared
    if square is not None or (mu := least_mu(loss)) == math.inf:
        return square
    return largest_reading(mu) ** 2


def _rho(loss: PrivacyLoss, omega: float) -> Fraction | None:
    """Return the rho of one run for orders below omega."""
    rho, line = loss.zcdp_rho, loss.zcdp_line()
    if rho is not None:
        return rho
    if line is None or line.omega < omega or line.rho == math.inf:
        return None
    return largest_reading(line.rho)


def is_least(loss: PrivacyLoss) -> bool:
    """Return whether no mu below ``least_mu`` holds of one run."""
    if isinstance(loss, RandomizedResponseLoss | DiscreteLaplaceLoss):
        return _of_vertices(loss) < math.inf
    return isinstance(loss, LaplaceLoss | RandomizedResponsePairLoss)


def least_mu(loss: PrivacyLoss) -> float:
    """Return a mu with ``G_mu <= f`` for one run in either direction, rounded up; inf for none."""
    match loss:
        case LaplaceLoss():
            return laplace_mu(loss.supremum) if loss.supremum < math.inf else math.inf
        case RandomizedResponseLoss() | DiscreteLaplaceLoss():
            return min(liu_mu(loss.supremum), _of_vertices(loss))
        case CellLoss():
            largest = max(loss.supremum, -loss.infimum)
            by_ends = liu_mu(largest) if largest < math.inf else math.inf
            return min(by_ends, least_mu(loss.unsampled)) if loss.unsampled else by_ends
        case _:
            return math.inf


@lru_cache(maxsize=256)
def _of_vertices(loss: AtomicLoss) -> float:
    """Return the largest mu of the vertices, rounded up; inf where they are too many."""
    from hockeystick.numerics.multiprecision import mp

    count = loss.atoms().loss.size
    if count > _MOST_VERTICES or loss.supremum > _LARGEST:
        return math.inf
    with working_digits(_DIGITS):
        losses, own = loss.nodes(0, count)
        other = [mass * mp.exp(-value) for value, mass in zip(losses, own, strict=True)]
        missed, alarms = _sums(own[:-1]), _sums(other[:0:-1])[::-1]
        near = _nearest(missed, alarms)
        if len(near) > _MOST_EXACT:
            return math.inf
        best = max(-_least_quantile(missed[k]) - _least_quantile(alarms[k]) for k in near)
        return float(best) * _OUTWARD


def _sums(masses: list[mpf]) -> list[mpf]:
    total, found = masses[0] * 0, []
    for mass in masses:
        total += mass
        found.append(total)
    return found


def _nearest(missed: list[mpf], alarms: list[mpf]) -> list[int]:
    """Return the vertices that may have the largest mu, by their two error rates."""
    import numpy as np
    from scipy.special import ndtri_exp

    from hockeystick.numerics.multiprecision import mp

    here, there = (
        np.asarray(ndtri_exp(np.array([float(mp.log(rate)) for rate in rates])))
        for rates in (missed, alarms)
    )
    mus = -here - there
    slack = _NEAR * (1.0 + np.abs(here) + np.abs(there))
    return [int(k) for k in np.flatnonzero(mus + slack >= float((mus - slack).max()))]


def _least_quantile(rate: mpf) -> mpf:
    """Return a number at most ``Phi^-1(rate)``, by Newton's steps, and verified."""
    from scipy.special import ndtri_exp

    from hockeystick.numerics.multiprecision import mp

    x = mp.mpf(float(ndtri_exp(float(mp.log(rate)))))
    for _ in range(3):
        x -= (mp.ncdf(x) - rate) / mp.npdf(x)
    slack = mp.mpf(_QUANTILE) * (1 + abs(x))
    while mp.ncdf(x - slack) > rate:
        slack *= 2
    return x - slack
