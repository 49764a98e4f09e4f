"""What implies zero-concentrated differential privacy: a line above all Renyi divergences."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import singledispatch

from hockeystick.conversions._evaluated import half_square
from hockeystick.conversions._given import Given
from hockeystick.conversions._reasons import (
    FAILS,
    FEW_ORDERS,
    NO_NOISE,
    and_bounds,
    bound,
    exact,
    refuse,
    told,
)
from hockeystick.conversions.by_losses import NORMAL, above, reveals, rho_of
from hockeystick.conversions.theorems import steinke_rho
from hockeystick.conversions.to_gdp import to_gdp
from hockeystick.conversions.to_pure import by_largest_loss
from hockeystick.mechanisms import Mechanism, runs_of
from hockeystick.notions import FDP, GDP, TCDP, ZCDP, ApproxDP, PureDP, RenyiDP
from hockeystick.numerics import FloatAndDecimal
from hockeystick.tradeoffs import GaussianTradeOff, LaplaceTradeOff, TradeOff

_STEINKE = "Steinke 2024, theorems 4 and 5: rho = eps tanh(eps/2)"
_GAUSSIAN = "Renyi divergence of normal distributions: alpha mu^2 / 2"
_NOISE = (
    "Renyi divergence of normal distributions: alpha mu^2 / 2; at most that of discrete ones an "
    "integer apart, and just that at order 1 (Canonne, Kamath and Steinke 2020, theorem 4)"
)
_FALLS = (
    "D_alpha / alpha falls from the Kullback-Leibler divergence at order 1: the logarithms of the "
    "moments are concave in (alpha - 1/2)^2"
)
_LINE = (
    "Bun and Steinke 2016, Steinke 2024, Rogers and Steinke 2021 for bounded losses; a sample "
    "costs at most what the worst of its cases does, by quasi-convexity"
)
_SUM = "Bun and Steinke 2016, lemma 1.7: rho adds up"
_NO_RHO = "no rho is known to bound all its Renyi divergences"
_UNSEEN = "divergences of all orders cannot be seen at finitely many of them"


@singledispatch
def to_zcdp(source: Mechanism, given: Given) -> ZCDP:
    """Return the sum of the rhos of a plan's parts."""
    parts = runs_of(source)
    if parts == ((source, 1),):
        return _of_losses(source, given)
    each = [to_zcdp(part, given) for part, _ in parts]
    rho = math.inf
    if all(one.rho < math.inf for one in each):
        exactly = [
            (count, _before_rounding(part, one.rho))
            for (part, count), one in zip(parts, each, strict=True)
        ]
        binary = sum((count * one.binary for count, one in exactly), Fraction(0))
        rho = above(binary, sum((count * one.decimal for count, one in exactly), Fraction(0)))
    tight = all(one.origin is not None and one.origin.kind == "exact" for one in each)
    return told(ZCDP(rho), and_bounds(_SUM, each), tight=tight)


def _before_rounding(part: Mechanism, rho: float) -> FloatAndDecimal:
    """Return the rho of a part as it was before it was rounded up to a float, if that is known.

    100 runs of Gaussian noise 10 have rho 1/2; 100 times the float above 1/200 is more.
    """
    if to_zcdp.dispatch(type(part)) is to_zcdp.dispatch(Mechanism):
        known = rho_of(part)
        if known is not None and above(known.value) == rho:
            return FloatAndDecimal(known.value, known.value)
    return FloatAndDecimal.of(rho)


def _of_losses(source: Mechanism, given: Given) -> ZCDP:
    """Return the rho that the losses of a mechanism imply, or else its largest loss."""
    known = rho_of(source)
    if known is not None and (rho := above(known.value)) < math.inf:
        normal = all(issubclass(one, NORMAL) for one in known.losses)
        if known.exact:
            return exact(ZCDP(rho), _NOISE if normal else _FALLS)
        return bound(ZCDP(rho), _LINE)
    if reveals(source):
        refuse(source, "ZCDP", NO_NOISE)
    return by_largest_loss(source, given, to_zcdp, "ZCDP", _NO_RHO)


@to_zcdp.register
def _(source: PureDP, given: Given) -> ZCDP:
    return exact(ZCDP(steinke_rho(source.epsilon)), _STEINKE)


@to_zcdp.register
def _(source: ApproxDP, given: Given) -> ZCDP:
    if source.delta > 0.0:
        refuse(source, "ZCDP", FAILS)
    return to_zcdp(PureDP(source.epsilon), given)


@to_zcdp.register
def _(source: GDP, given: Given) -> ZCDP:
    return exact(ZCDP(half_square(source.mu)), _GAUSSIAN)


@to_zcdp.register
def _(source: ZCDP, given: Given) -> ZCDP:
    return exact(ZCDP(source.rho), "the guarantee itself")


@to_zcdp.register
def _(source: TCDP, given: Given) -> ZCDP:
    if source.omega < math.inf:
        refuse(source, "ZCDP", FEW_ORDERS)
    return exact(ZCDP(source.rho), "definition: (rho, inf)-tCDP is rho-zCDP")


@to_zcdp.register
def _(source: RenyiDP, given: Given) -> ZCDP:
    refuse(source, "ZCDP", FEW_ORDERS)


@to_zcdp.register
def _(source: FDP, given: Given) -> ZCDP:
    return _of_function(source.tradeoff, source, given)


@singledispatch
def _of_function(f: TradeOff, source: FDP, given: Given) -> ZCDP:
    """Return the rho of the release that f stands for, or else that the largest loss implies."""
    if isinstance(f.release, Mechanism):
        return _of_losses(source, given)
    return by_largest_loss(source, given, to_zcdp, "ZCDP", _UNSEEN)


@_of_function.register
def _(f: GaussianTradeOff, source: FDP, given: Given) -> ZCDP:
    return to_zcdp(to_gdp(source, given), given)


@_of_function.register
def _(f: LaplaceTradeOff, source: FDP, given: Given) -> ZCDP:
    return _of_losses(source, given)
