"""What implies (epsilon, delta)-DP: everything does, at some epsilon or delta."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import singledispatch
from typing import TypeVar

from hockeystick import accountants
from hockeystick.accountants import epsilon
from hockeystick.conversions._given import FAILS, UNBOUNDED, Given, exact, refuse, through, told
from hockeystick.conversions.theorems import balle_wang, kairouz_oh_viswanath
from hockeystick.errors import IncompatibleError
from hockeystick.mechanisms import Mechanism
from hockeystick.notions import FDP, GDP, TCDP, ZCDP, ApproxDP, Notion, PureDP, RenyiDP
from hockeystick.results import Certified
from hockeystick.tradeoffs.profiles.one_order import delta_by_orders, epsilon_by_orders
from hockeystick.tradeoffs.profiles.renyi_curve import RenyiCurve, RenyiLine, RenyiPoints

_ROUNDED = 1.0 - 2.0**-48
_NO_LARGEST = "its losses have no largest value, or none that is known"
_Notion = TypeVar("_Notion", bound=Notion)


@singledispatch
def to_pure(source: Mechanism, given: Given) -> PureDP:
    """Return the epsilon at delta 0 of a plan."""
    answer = epsilon(source, delta=0.0)
    upper = float(answer)
    if upper == math.inf:
        refuse(source, "PureDP", f"{_NO_LARGEST}; ApproxDP at a small delta says what it costs")
    theorem = "the largest loss, added up over the plan"
    # The ends of the largest loss of a release differ by no more than readings and round-off.
    tight = answer.lower >= upper * _ROUNDED
    return told(PureDP(upper), theorem, tight=tight, lower=(float(answer.lower),))


@to_pure.register
def _(source: PureDP, given: Given) -> PureDP:
    return exact(PureDP(source.epsilon), "the guarantee itself")


@to_pure.register
def _(source: ApproxDP, given: Given) -> PureDP:
    if source.delta > 0.0:
        refuse(source, "PureDP", FAILS)
    return exact(PureDP(source.epsilon), "definition: (epsilon, 0)-DP is epsilon-DP")


@to_pure.register
def _(source: GDP | ZCDP | TCDP | RenyiDP, given: Given) -> PureDP:
    refuse(source, "PureDP", UNBOUNDED)


@to_pure.register
def _(source: FDP, given: Given) -> PureDP:
    f = source.tradeoff
    largest = max(f.forward.supremum, f.backward.supremum)
    if largest == math.inf:
        refuse(source, "PureDP", "losses under f have no largest value, or none that is known")
    if f.delta(largest * (1.0 + 2.0**-40) + 1e-300).upper > 0.0:
        refuse(source, "PureDP", "f lets a loss be infinite with some probability")
    return exact(PureDP(largest), "Dong, Roth and Su 2022, proposition 2.12: delta is 0 from here")


def by_largest_loss(
    source: Mechanism, given: Given, convert: Callable[..., _Notion], target: str, reason: str
) -> _Notion:
    """Return what the largest loss of a source implies of a target, or else raise the reason."""
    try:
        pure = to_pure(source, given)
    except IncompatibleError:
        refuse(source, target, reason)
    return through(pure, convert(pure, given))


_RESPONSE = "Kairouz, Oh and Viswanath 2017, theorem 2: randomized response is the worst"
_GAUSSIAN = "Balle and Wang 2018, theorem 8; Dong, Roth and Su 2022, corollary 2.13"
_ORDERS = "Asoodeh et al. 2021, theorem 3: the best conversion of one order"
_DUALITY = "Dong, Roth and Su 2022, proposition 2.12"
_TIGHT = 1e-9
_PRECISE = 1e-9


@singledispatch
def to_approx(source: Mechanism, given: Given) -> ApproxDP:
    """Return the certified answer of the accountants."""
    if given.delta is not None:
        answer = accountants.epsilon(source, given.delta)
    else:
        answer = accountants.delta(source, epsilon=_asked(given))
    return _certified(source, given, answer, f"accountant {answer.accountant!r}")


@to_approx.register
def _(source: PureDP, given: Given) -> ApproxDP:
    return _by_response(source, source.epsilon, 0.0, given)


@to_approx.register
def _(source: ApproxDP, given: Given) -> ApproxDP:
    return _by_response(source, source.epsilon, source.delta, given)


@to_approx.register
def _(source: GDP, given: Given) -> ApproxDP:
    if given.delta is not None and _is_inside(source, given.delta):
        return _result(source, given, balle_wang(source.mu, delta=given.delta), _GAUSSIAN)
    if given.delta is not None:
        return _result(source, given, 0.0, _GAUSSIAN)
    return _result(source, given, balle_wang(source.mu, epsilon=given.epsilon), _GAUSSIAN)


@to_approx.register
def _(source: ZCDP, given: Given) -> ApproxDP:
    return _by_orders(source, RenyiLine(source.rho), given)


@to_approx.register
def _(source: TCDP, given: Given) -> ApproxDP:
    return _by_orders(source, RenyiLine(source.rho, source.omega), given)


@to_approx.register
def _(source: RenyiDP, given: Given) -> ApproxDP:
    return _by_orders(source, points_of(source), given)


@to_approx.register
def _(source: FDP, given: Given) -> ApproxDP:
    f = source.tradeoff
    answer = f.delta(_asked(given)) if given.delta is None else f.epsilon(given.delta)
    return _certified(source, given, answer, _DUALITY)


def points_of(source: RenyiDP) -> RenyiPoints:
    """Return the divergences of a guarantee that say something."""
    return RenyiPoints([pair for pair in source.divergences if pair[1] < math.inf])


def _by_response(source: Notion, epsilon: float, delta: float, given: Given) -> ApproxDP:
    """Return the profile of the worst (epsilon, delta)-DP mechanism."""
    value = kairouz_oh_viswanath(epsilon, delta, epsilon=given.epsilon, delta=given.delta)
    return _result(source, given, value, _RESPONSE)


def _by_orders(source: Notion, curve: RenyiCurve, given: Given) -> ApproxDP:
    """Return the guarantee by the best single order; of a single order, all that it proves."""
    # The guarantee of one order is tight, unless it is so small that floats only bound it.
    points = curve.divergences if isinstance(curve, RenyiPoints) else ()
    tight = len(points) == 1 and points[0][1] * (points[0][0] - 1.0) >= _PRECISE
    if given.delta is None:
        return _result(source, given, delta_by_orders(curve, _asked(given)), _ORDERS, tight=tight)
    inside = _is_inside(source, given.delta)
    value = epsilon_by_orders(curve, given.delta) if inside else 0.0
    return _result(source, given, value, _ORDERS, tight=tight)


def _certified(source: Mechanism, given: Given, answer: Certified, theorem: str) -> ApproxDP:
    """Return the upper end of an interval; exact where it is as narrow as rounding allows."""
    tight = answer.lower == answer.upper or answer.upper - answer.lower <= _TIGHT * answer.upper
    least = float(answer.lower)
    lower = (0.0, least) if given.delta is None else (least, 0.0)
    return _result(source, given, float(answer.upper), theorem, tight=tight, lower=lower)


def _result(
    source: Mechanism,
    given: Given,
    value: float,
    theorem: str,
    *,
    tight: bool = True,
    lower: tuple[float, ...] = (),
) -> ApproxDP:
    """Return the value with what it was asked at, or raise where it says nothing."""
    tight = tight or value == 0.0
    if given.delta is None:
        return told(ApproxDP(_asked(given), value), theorem, tight=tight, lower=lower)
    if value == math.inf:
        reason = f"no finite epsilon has a delta as small as {given.delta:g}"
        refuse(source, "ApproxDP", reason)
    return told(ApproxDP(value, given.delta), theorem, tight=tight, lower=lower)


def _is_inside(source: Mechanism, delta: float) -> bool:
    """Return whether a delta is below 1; raise where it is 0, for which every loss counts."""
    if delta == 0.0:
        refuse(source, "ApproxDP", "its losses have no largest value, as delta = 0 would need")
    return delta < 1.0


def _asked(given: Given) -> float:
    """Return the epsilon that is given."""
    return math.inf if given.epsilon is None else given.epsilon
