"""Zero-concentrated privacy of one run: the least known line above all Renyi divergences."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import singledispatch
from itertools import pairwise
from typing import Final, NamedTuple

from hockeystick.privacy_loss.core.base import CellLoss, PrivacyLoss
from hockeystick.privacy_loss.core.dominated import DominatedLoss
from hockeystick.privacy_loss.core.observed_mixture import (
    ObservedMixtureLoss,
    ObservedMixtureProfiledLoss,
)
from hockeystick.privacy_loss.core.symmetrized import SymmetrizedLoss, SymmetrizedProfiledLoss
from hockeystick.privacy_loss.federated.revealed_round import RevealedRoundLoss
from hockeystick.privacy_loss.guarantees.bounded_range import BoundedRangeLoss
from hockeystick.privacy_loss.guarantees.renyi import ConcentratedLoss, RenyiCurveLoss
from hockeystick.privacy_loss.guarantees.trade_off import ProfileLoss
from hockeystick.privacy_loss.guarantees.two_point import RandomizedResponsePairLoss
from hockeystick.privacy_loss.noise.discrete_gaussian import DiscreteGaussianLoss
from hockeystick.privacy_loss.sampling.sampled import SampledLoss, SampledProfiledLoss
from hockeystick.privacy_loss.sampling.sampled_atoms import SampledAtomsLoss
from hockeystick.privacy_loss.selection.sparse_vector import FirstOfManyLoss

# Covers the few roundings of each formula, and the readings of its parameters.
_OUTWARD: Final = 2.0**-47
_LEAST: Final = 5e-324
# To tell a slope from another, with its round-off.
_NEAR: Final = 1e-12


class Concentration(NamedTuple):
    """``D_alpha <= rho alpha`` for alpha from 1 to omega, in both orders of a pair (P, Q)."""

    rho: float
    omega: float = math.inf


@singledispatch
def concentration_of(loss: PrivacyLoss) -> Concentration | None:
    """Return what line lies above the Renyi divergences of one run.

    Guarantees:
        An upper bound: ``D_alpha(P||Q)`` and ``D_alpha(Q||P)`` are at most ``rho alpha`` for all
        alpha in (1, omega), rounding included. It is the least rho for Gaussians, sampled or not,
        for randomized response of two outcomes and for the guarantees; a bound elsewhere.

    Edge cases:
        A loss that may be infinite has none, nor has one that is neither bounded on both sides
        nor known to stay below a Gaussian's.

    Args:
        loss: The loss of one run.

    Returns:
        rho, rounded up, and omega; None where no line is known.

    References:
        Bun and Steinke, "Concentrated Differential Privacy", 2016, definition 1.1; Bun, Dwork,
        Rothblum and Steinke, "Composable and Versatile Privacy via Truncated CDP", 2018,
        definition 1.

    Example:
        >>> from hockeystick.privacy_loss import RandomizedResponsePairLoss
        >>> from hockeystick.privacy_loss.bounds.zcdp_line import concentration_of
        >>> round(concentration_of(RandomizedResponsePairLoss(1.0)).rho, 12)
        0.46211715726
    """
    return below_gaussian(loss)


@concentration_of.register
def _(loss: DiscreteGaussianLoss) -> Concentration:
    # Canonne, Kamath and Steinke 2020, theorem 4.
    return Concentration(outward(float(loss.sensitivity**2 * loss.half)))


@concentration_of.register
def _(loss: ConcentratedLoss) -> Concentration:
    return Concentration(loss.rho, loss.omega)


@concentration_of.register
def _(loss: RenyiCurveLoss) -> Concentration:
    corners = ((0.0, 0.0), *loss.points)
    steepest = max(steepest_slope(left, right) for left, right in pairwise(corners))
    return Concentration(outward(steepest), 1.0 + loss.end)


@concentration_of.register
def _(loss: FirstOfManyLoss) -> Concentration:
    # Of ``flat c (c+1) + ln N`` the line from 0 to ``c = sqrt(ln N / flat)``, as K is convex.
    chord = loss.flat + 2.0 * math.sqrt(loss.flat) * math.sqrt(loss.log_queries)
    return Concentration(outward(min(loss.steep, chord)))


@concentration_of.register
def _(loss: RandomizedResponsePairLoss) -> Concentration | None:
    return _within(-loss.epsilon, loss.epsilon) if loss.failure == 0.0 else None


@concentration_of.register
def _(loss: CellLoss) -> Concentration | None:
    return _least((_within(loss.infimum, loss.supremum), below_gaussian(loss)))


@concentration_of.register(SampledLoss)
@concentration_of.register(SampledProfiledLoss)
@concentration_of.register(SampledAtomsLoss)
def _(loss: SampledLoss | SampledProfiledLoss | SampledAtomsLoss) -> Concentration | None:
    # By the new ends of the loss, or by quasi-convexity what the inside costs.
    return _least((_within(loss.infimum, loss.supremum), concentration_of(loss.inner)))


@concentration_of.register(SymmetrizedLoss)
@concentration_of.register(SymmetrizedProfiledLoss)
def _(loss: SymmetrizedLoss | SymmetrizedProfiledLoss) -> Concentration | None:
    # A sample costs no more than all of the data, whose losses are the same in both directions.
    lines = [_within(loss.infimum, loss.supremum), below_gaussian(loss)]
    if isinstance(loss.one, SampledLoss | SampledProfiledLoss | SampledAtomsLoss):
        lines.append(concentration_of(loss.one.inner))
    return _least(lines)


@concentration_of.register(ObservedMixtureLoss)
@concentration_of.register(ObservedMixtureProfiledLoss)
def _(loss: ObservedMixtureLoss | ObservedMixtureProfiledLoss) -> Concentration | None:
    # What is revealed is at worst the costliest.
    lines = [concentration_of(one) for _, one in loss.components if one]
    known = [line for line in lines if line]
    if len(known) < len(lines):
        return None
    return Concentration(max(line.rho for line in known), min(line.omega for line in known))


@concentration_of.register
def _(loss: RevealedRoundLoss) -> Concentration | None:
    # The same of a coin that is seen: at worst it shows the runs.
    lines = [(concentration_of(one), count) for one, count in loss.terms]
    known = [(line, count) for line, count in lines if line]
    if len(known) < len(lines):
        return None
    rho = math.fsum(count * line.rho for line, count in known)
    return Concentration(outward(rho), min(line.omega for line, _ in known))


@concentration_of.register
def _(loss: DominatedLoss) -> Concentration | None:
    return concentration_of(loss.above)


@concentration_of.register
def _(loss: BoundedRangeLoss) -> Concentration | None:
    return _of_range(loss.supremum)


@concentration_of.register
def _(loss: ProfileLoss) -> Concentration | None:
    return _within(-ProfileLoss(loss.other, loss.profile).supremum, loss.supremum)


def below_gaussian(loss: PrivacyLoss) -> Concentration | None:
    """Return ``rho = mu^2 / 2`` of the Gaussian that dominates a loss, None where none is known.

    Divergences fall where trade-off functions rise.
    """
    square = loss.dominating_mu_squared
    if square is None:
        return None
    try:
        return Concentration(outward(0.5 * float(square)))
    except OverflowError:
        return Concentration(math.inf)


def _least(lines: Iterable[Concentration | None]) -> Concentration | None:
    """Return the line with the least rho of those that are known."""
    return min((line for line in lines if line), key=lambda line: line.rho, default=None)


def _within(infimum: float, supremum: float) -> Concentration | None:
    """Return what a loss has that is bounded on both sides.

    The likelihood ratio has mean 1 under Q and stays between the exponentials of the ends, so that
    K, the mean of a convex function of it, is largest with all the mass at ``exp(+-m)``, m the end
    farther from 0: ``rho = m tanh(m/2)`` (Steinke 2024, theorems 4 and 5). Or by the range.
    """
    farther = max(-infimum, supremum)
    if farther == math.inf:
        return None
    by_ends = outward(farther * math.tanh(0.5 * farther))
    return Concentration(min(by_ends, _of_range(supremum - infimum).rho))


def _of_range(width: float) -> Concentration:
    """Return what a loss has that stays in an interval: ``rho = width^2 / 8``.

    K'' is a variance of the tilted loss, at most ``width^2 / 4``, so that ``K - width^2 c (c+1)/8``
    is concave; it is 0 at c = -1 and 0, and negative beyond (Rogers and Steinke 2021).
    """
    return Concentration(outward(0.125 * width * width))


def steepest_slope(left: tuple[float, float], right: tuple[float, float]) -> float:
    """Return the supremum of ``K(c) / (c (c + 1))`` on a chord ``K = b c - a`` of the curve.

    It is at most ``(sqrt(a + b) - sqrt(a))^2``, attained unless it falls, or rises, throughout.
    """
    (x0, y0), (x1, y1) = left, right
    b = (y1 - y0) / (x1 - x0)
    if b == math.inf:
        return math.inf
    if b * x0 * (x0 + 1.0) < y0 * (2.0 * x0 + 1.0) * (1.0 - _NEAR):
        return y0 / x0 / (x0 + 1.0)
    if b * x1 * (x1 + 1.0) > y1 * (2.0 * x1 + 1.0) * (1.0 + _NEAR):
        return y1 / x1 / (x1 + 1.0)
    # Where it turns, b x0 <= 2 sqrt(a (a + b)): what cancels in a hardly counts.
    a = max(b * x0 - y0, 0.0)
    return (b / (math.sqrt(a + b) + math.sqrt(a))) ** 2 if b > 0.0 else 0.0


def outward(value: float) -> float:
    """Return a little more, never 0."""
    return value * (1.0 + _OUTWARD) + 2.0 * _LEAST
