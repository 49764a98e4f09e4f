"""What the losses of a plan's runs say of the notions that add up: the one place that asks.

The least mu of one run of a known loss is where its trade-off function needs the most:

- Laplace noise with ``e = 1/b``: ``f(alpha) = exp(-e) / (4 alpha)`` between ``exp(-e)/2`` and 1/2,
  and f is linear outside, to (0, 1) and (1, 0), where ``G_mu``, which is convex, is below it as
  soon as it is at the other end. With ``alpha = Phi(-x)`` and ``f = Phi(-y)`` the least mu is the
  largest ``x + y`` with ``ln Phi(-x) + ln Phi(-y) >= -e - ln 4``. As ``ln Phi`` is concave these
  (x, y) are a convex set, and a symmetric one: it has ``((x + y)/2, (x + y)/2)`` as well. So
  x = y and

      mu = -2 Phi^-1(exp(-e/2) / 2).

- Integer Laplace noise at distance D with ``t = e^(-1/b)``: f is a polygon, ``G_mu`` is below it
  where it is below its vertices ``(t^j / (1+t), t^(D+1-j) / (1+t))``, j = 1..D, and as their
  product is the same, it is so at all where it is at the one next to the middle.

- Responses of K categories: the vertices are ``(1/w, (K-1)/w)`` with ``w = e^eps + K - 1``, and its
  mirror image.

A smaller mu has ``G_mu > f`` there. On a sample both directions have at most the mu of the run, as
hockey-stick divergences are jointly convex.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import lru_cache, partial
from typing import Final, NamedTuple

from hockeystick.accountants.base import composition_of
from hockeystick.conversions.theorems import laplace_mu, liu_mu, quantile_below
from hockeystick.mechanisms import Mechanism
from hockeystick.numerics import Ball, largest_reading, least_reading
from hockeystick.numerics.multiprecision import mp, working_digits
from hockeystick.numerics.rounding import OUTWARD_16, OUTWARD_64
from hockeystick.precision.profiles import exact, reciprocal
from hockeystick.privacy_loss import (
    CellLoss,
    ConcentratedLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    LaplaceLoss,
    PrivacyLoss,
    RandomizedResponseLoss,
    RandomizedResponsePairLoss,
    Terms,
    WideDiscreteGaussianLoss,
    attained,
)
from hockeystick.tradeoffs.attack_words import DIGITS

# Losses whose least rho is that of order 1, and those of one run whose least mu is known.
_ATTAIN_RHO: Final = (
    *(GaussianLoss, DiscreteGaussianLoss, WideDiscreteGaussianLoss, ConcentratedLoss),
    *(LaplaceLoss, DiscreteLaplaceLoss, RandomizedResponsePairLoss),
)
_ATTAIN_MU: Final = (
    *(LaplaceLoss, DiscreteLaplaceLoss),
    *(RandomizedResponseLoss, RandomizedResponsePairLoss),
)


class Amount(NamedTuple):
    """What adds up over runs, an upper bound; exact where all of them attain it."""

    value: Fraction
    exact: bool


def mu_square_of(mechanism: Mechanism) -> Amount | None:
    """Return ``sum mu_i^2`` of Gaussians that dominate the runs, in the worst direction and place.

    It is exact where all are Gaussian, or where a single run has its own least mu. A bounded loss
    has the mu of its largest absolute value. None where a run has no mu.
    """
    directions = composition_of(mechanism, "f-dp").directions
    one_run = all(sum(count for _, count in terms) <= 1 for terms in directions)
    known = (GaussianLoss, *_ATTAIN_MU) if one_run else GaussianLoss
    return _worst(directions, _mu_square, known)


def rho_of(mechanism: Mechanism, omega: float = math.inf) -> Amount | None:
    """Return the sum of the least known rhos with ``D_alpha <= rho alpha`` for alpha below omega.

    It is exact where all runs attain theirs at order 1. None where a run has no such line.
    """
    directions = composition_of(mechanism, "zcdp").directions
    return _worst(directions, partial(_rho, omega=omega), _ATTAIN_RHO)


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


def _worst(
    directions: Iterable[Terms],
    of_loss: Callable[[PrivacyLoss], Fraction | None],
    attain: type[PrivacyLoss] | tuple[type[PrivacyLoss], ...],
) -> Amount | None:
    """Return the largest sum over the runs, None where one of them is not known."""
    sums, exact = [], True
    for terms in directions:
        values = [(of_loss(loss), count) for loss, count in terms]
        if any(value is None for value, _ in values):
            return None
        sums.append(sum((count * value for value, count in values if value), Fraction(0)))
        exact = exact and all(isinstance(loss, attain) for loss, _ in terms)
    return Amount(max(sums), exact)


def _mu_square(loss: PrivacyLoss) -> Fraction | None:
    square = loss.dominating_mu_squared
    if square is not None or (mu := least_mu(loss)) == math.inf:
        return square
    return largest_reading(mu) ** 2


def _rho(loss: PrivacyLoss, omega: float) -> Fraction | None:
    rho, line = loss.zcdp_rho, loss.zcdp_line()
    if rho is not None:
        return rho
    if line is None or line.omega < omega or line.rho == math.inf:
        return None
    return largest_reading(line.rho)


def least_mu(loss: PrivacyLoss) -> float:
    """Return a mu with ``G_mu <= f`` for one run in either direction, rounded up; inf for none."""
    match loss:
        case LaplaceLoss():
            return laplace_mu(loss.supremum) if loss.supremum < math.inf else math.inf
        case RandomizedResponseLoss() | DiscreteLaplaceLoss():
            return min(liu_mu(loss.supremum), _of_vertex(loss))
        case CellLoss():
            largest = max(loss.supremum, -loss.infimum)
            by_ends = liu_mu(largest) if largest < math.inf else math.inf
            return min(by_ends, least_mu(loss.unsampled)) if loss.unsampled else by_ends
        case _:
            return math.inf


@lru_cache(maxsize=256)
def _of_vertex(loss: RandomizedResponseLoss | DiscreteLaplaceLoss) -> float:
    """Return the mu of the vertex of f that needs the most, rounded up."""
    with working_digits(DIGITS):
        if isinstance(loss, RandomizedResponseLoss):
            others = loss.categories - 1
            whole = mp.exp(exact(loss.epsilon)) + others
            rates = 1 / whole, others / whole
        else:
            t, place = mp.exp(-reciprocal(loss.scale)), (loss.sensitivity + 1) // 2
            rates = t**place / (1 + t), t ** (loss.sensitivity + 1 - place) / (1 + t)
        return float(-sum(quantile_below(mp.log(rate)) for rate in rates)) * (1.0 + OUTWARD_64)


def plan_divergence(terms: Terms, order: float) -> tuple[float, float]:
    """Return ends of the divergence of an order, in one direction.

    The lower one is that of the attained losses: where only a dominating pair is known, no data
    need have its divergences.
    """
    c = order - 1.0
    known = {loss: loss.cgf_bounds(c) for loss, _ in terms}
    upper = math.fsum(count * (known[loss].midpoint + known[loss].radius) for loss, count in terms)
    # What underflows is not nothing.
    least = math.ulp(0.0) if terms else 0.0
    return attained_divergence(terms, order, known), max(upper / c * (1.0 + OUTWARD_16), least)


def attained_divergence(
    terms: Terms, order: float, known: Mapping[PrivacyLoss, Ball] | None = None
) -> float:
    """Return a lower bound of the divergence of an order that some data have, in one direction."""
    c = order - 1.0
    done = known or {}
    balls = [(done.get(loss) or loss.cgf_bounds(c), count) for loss, count in attained(terms)]
    # Where both are infinite, their difference is NaN, which max drops.
    lower = math.fsum(count * max(0.0, cgf.midpoint - cgf.radius) for cgf, count in balls)
    return lower / c / (1.0 + OUTWARD_16)
