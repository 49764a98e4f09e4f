"""What the losses of a mechanism's runs say of the notions that add up: the one place that asks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from hockeystick.accountants.base import composition_of
from hockeystick.conversions._least_mu import is_least, least_mu
from hockeystick.mechanisms import Mechanism
from hockeystick.numerics import decimal, largest_reading, least_reading
from hockeystick.privacy_loss import (
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    LaplaceLoss,
    PrivacyLoss,
    RandomizedResponsePairLoss,
    Terms,
    WideDiscreteGaussianLoss,
)

# Losses that attain the rho of a normal distribution, and those whose rho is D_1.
NORMAL: Final = (GaussianLoss, DiscreteGaussianLoss, WideDiscreteGaussianLoss)
_LARGEST_AT_ORDER_1: Final = (LaplaceLoss, DiscreteLaplaceLoss, RandomizedResponsePairLoss)

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
    found = [_sum(terms, of_loss) for terms in directions]
    known = [value for value in found if value is not None]
    if len(known) < len(found):
        return None
    losses = frozenset(type(loss) for terms in directions for loss, _ in terms)
    return Amount(max(known), all(issubclass(one, attained) for one in losses), losses)


def _sum(terms: Terms, of_loss: _OfLoss) -> Fraction | None:
    """Return the sum over the runs of one direction."""
    total = Fraction(0)
    for loss, count in terms:
        value = of_loss(loss)
        if value is None:
            return None
        total += count * value
    return total


def _mu_square(loss: PrivacyLoss) -> Fraction | None:
    """Return the square of the mu of one run."""
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
