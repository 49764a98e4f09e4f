"""What the losses of a mechanism's runs say of the notions that add up: the one place that asks."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import NamedTuple, TypeAlias

from hockeystick.accountants.composition import composition_of
from hockeystick.conversions.theorems import liu_mu
from hockeystick.mechanisms import Mechanism
from hockeystick.numerics import largest_reading, least_reading
from hockeystick.privacy_loss import (
    CellLoss,
    DiscreteGaussianLoss,
    GaussianLoss,
    PrivacyLoss,
    Terms,
)

_OfLoss: TypeAlias = Callable[[PrivacyLoss], Fraction | None]


class Amount(NamedTuple):
    """What adds up over runs, an upper bound; exact where all of them attain it."""

    value: Fraction
    exact: bool


def mu_square_of(mechanism: Mechanism) -> Amount | None:
    """Return ``sum mu_i^2`` of Gaussians that dominate the runs, in the worst direction and place.

    A bounded loss has the mu of its largest absolute value. None where a run has no mu.

    Raises:
        UnsupportedError: If nothing is known of a part of it.
    """
    return _worst(mechanism, "f-dp", _mu_square, (GaussianLoss,))


def rho_of(mechanism: Mechanism, omega: float = math.inf) -> Amount | None:
    """Return the sum of the least known rhos with ``D_alpha <= rho alpha`` for alpha below omega.

    None where a run has no such line.

    Raises:
        UnsupportedError: If nothing is known of a part of it.
    """
    attained = (GaussianLoss, DiscreteGaussianLoss)
    return _worst(mechanism, "zcdp", partial(_rho, omega=omega), attained)


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


def above(value: Fraction) -> float:
    """Return a float that is no less than an exact number >= 0, however it is read."""
    try:
        found = float(value)
    except OverflowError:
        return math.inf
    while found < math.inf and least_reading(found) < value:
        found = math.nextafter(found, math.inf)
    return found


def _worst(
    mechanism: Mechanism, accountant: str, of_loss: _OfLoss, attained: tuple[type[PrivacyLoss], ...]
) -> Amount | None:
    """Return the largest sum over the runs, None where one of them is not known.

    It is exact where the runs are of the losses that attain what is summed.
    """
    directions = composition_of(mechanism, accountant).directions
    found = [_sum(terms, of_loss) for terms in directions]
    known = [value for value in found if value is not None]
    if len(known) < len(found):
        return None
    exact = all(isinstance(loss, attained) for terms in directions for loss, _ in terms)
    return Amount(max(known), exact)


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
    largest = max(loss.supremum, -loss.infimum) if isinstance(loss, CellLoss) else math.inf
    if square is not None or largest == math.inf:
        return square
    return largest_reading(liu_mu(largest)) ** 2


def _rho(loss: PrivacyLoss, omega: float) -> Fraction | None:
    """Return the rho of one run for orders below omega."""
    rho, line = loss.zcdp_rho, loss.zcdp_line()
    if rho is not None:
        return rho
    if line is None or line.omega < omega or line.rho == math.inf:
        return None
    return largest_reading(line.rho)
