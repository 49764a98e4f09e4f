"""What implies f-DP: everything does, for some trade-off function."""

from __future__ import annotations

from functools import singledispatch

from hockeystick.accountants import tradeoff
from hockeystick.conversions._given import Given
from hockeystick.conversions._reasons import bound, exact
from hockeystick.conversions.to_approx import points_of
from hockeystick.mechanisms import Mechanism
from hockeystick.notions import FDP, GDP, TCDP, ZCDP, ApproxDP, PureDP, RenyiDP
from hockeystick.tradeoffs import GaussianTradeOff
from hockeystick.tradeoffs.functions.piecewise import ApproxTradeOff
from hockeystick.tradeoffs.functions.renyi import RenyiTradeOff
from hockeystick.tradeoffs.profiles.renyi_curve import RenyiLine

_WASSERMAN = "Wasserman and Zhou 2010; Dong, Roth and Su 2022, proposition 2.5"
_TWO = "data processing to two outcomes, of which the divergences are those of f"


@singledispatch
def to_fdp(source: Mechanism, given: Given) -> FDP:
    """Return the trade-off function of a plan."""
    return bound(FDP(tradeoff(source)), "the plan's privacy profiles, by the contour accountant")


@to_fdp.register
def _(source: PureDP, given: Given) -> FDP:
    return exact(FDP(ApproxTradeOff(source.epsilon, 0.0)), _WASSERMAN)


@to_fdp.register
def _(source: ApproxDP, given: Given) -> FDP:
    return exact(FDP(ApproxTradeOff(source.epsilon, source.delta)), _WASSERMAN)


@to_fdp.register
def _(source: GDP, given: Given) -> FDP:
    return exact(FDP(GaussianTradeOff(source.mu)), "Dong, Roth and Su 2022, definition 2.6")


@to_fdp.register
def _(source: ZCDP, given: Given) -> FDP:
    return bound(FDP(RenyiTradeOff(RenyiLine(source.rho))), _TWO)


@to_fdp.register
def _(source: TCDP, given: Given) -> FDP:
    return bound(FDP(RenyiTradeOff(RenyiLine(source.rho, source.omega))), _TWO)


@to_fdp.register
def _(source: RenyiDP, given: Given) -> FDP:
    return exact(FDP(RenyiTradeOff(points_of(source))), _TWO)


@to_fdp.register
def _(source: FDP, given: Given) -> FDP:
    return exact(FDP(source.tradeoff), "the guarantee itself")
