"""What implies (epsilon, delta)-DP: everything does, at some epsilon or delta."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from hockeystick import accountants
from hockeystick.accountants import epsilon
from hockeystick.conversions.given import (
    FAILS,
    ITSELF,
    UNBOUNDED,
    Given,
    exact,
    proven,
    refused,
    simplest,
    through,
)
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


def to_pure(source: Mechanism, given: Given) -> PureDP:
    """Return the largest loss that a source allows."""
    source = simplest(source)
    match source:
        case PureDP():
            return exact(source, ITSELF)
        case ApproxDP():
            raise refused(source, "PureDP", FAILS)
        case GDP() | ZCDP() | TCDP() | RenyiDP():
            raise refused(source, "PureDP", UNBOUNDED)
        case FDP():
            return _largest_under(source)
        case _:
            return _of_plan(source)


def _of_plan(source: Mechanism) -> PureDP:
    answer = epsilon(source, delta=0.0)
    upper = float(answer)
    if upper == math.inf:
        raise refused(
            source, "PureDP", f"{_NO_LARGEST}; ApproxDP at a small delta says what it costs"
        )
    theorem = "the largest loss, added up over the plan"
    # The ends of the largest loss of a release differ by no more than readings and round-off.
    tight = answer.lower >= upper * _ROUNDED
    return proven(PureDP(upper), theorem, tight=tight, lower=(float(answer.lower),))


def _largest_under(source: FDP) -> PureDP:
    f = source.tradeoff
    largest = max(f.forward.supremum, f.backward.supremum)
    if largest == math.inf:
        raise refused(
            source, "PureDP", "losses under f have no largest value, or none that is known"
        )
    if f.delta(largest * (1.0 + 2.0**-40) + 1e-300).upper > 0.0:
        raise refused(source, "PureDP", "f lets a loss be infinite with some probability")
    return exact(PureDP(largest), "Dong, Roth and Su 2022, proposition 2.12: delta is 0 from here")


def by_largest_loss(
    source: Mechanism, given: Given, convert: Callable[..., _Notion], target: str, reason: str
) -> _Notion:
    """Return what the largest loss of a source implies of a target, or else raise the reason."""
    try:
        pure = to_pure(source, given)
    except IncompatibleError:
        raise refused(source, target, reason) from None
    return through(pure, convert(pure, given))


_RESPONSE = "Kairouz, Oh and Viswanath 2017, theorem 2: randomized response is the worst"
_GAUSSIAN = "Balle and Wang 2018, theorem 8; Dong, Roth and Su 2022, corollary 2.13"
_ORDERS = "Asoodeh et al. 2021, theorem 3: the best conversion of one order"
_DUALITY = "Dong, Roth and Su 2022, proposition 2.12"
_TIGHT = 1e-9
_PRECISE = 1e-9


def to_approx(source: Mechanism, given: Given) -> ApproxDP:
    """Return epsilon at the delta that is given, or delta at the epsilon."""
    match source:
        case PureDP() | ApproxDP():
            own = source.delta if isinstance(source, ApproxDP) else 0.0
            how = {"epsilon": given.epsilon, "delta": given.delta}
            return _result(
                source, given, kairouz_oh_viswanath(source.epsilon, own, **how), _RESPONSE
            )
        case GDP(mu=mu):
            at = partial(balle_wang, mu)
            delta, epsilon = (lambda e: at(epsilon=e)), (lambda d: at(delta=d))
            return _of_tail(source, given, _GAUSSIAN, delta, epsilon)
        case ZCDP():
            return _by_orders(source, RenyiLine(source.rho), given)
        case TCDP():
            return _by_orders(source, RenyiLine(source.rho, source.omega), given)
        case RenyiDP():
            return _by_orders(source, points_of(source), given)
        case FDP(tradeoff=f):
            answer = f.delta(_asked(given)) if given.delta is None else f.epsilon(given.delta)
            return _certified(source, given, answer, _DUALITY)
        case _:
            if given.delta is not None:
                answer = accountants.epsilon(source, given.delta)
            else:
                answer = accountants.delta(source, epsilon=_asked(given))
            return _certified(source, given, answer, f"accountant {answer.accountant!r}")


def points_of(source: RenyiDP) -> RenyiPoints:
    """Return the divergences of a guarantee that say something."""
    return RenyiPoints([pair for pair in source.divergences if pair[1] < math.inf])


def _by_orders(source: Notion, curve: RenyiCurve, given: Given) -> ApproxDP:
    """Return the guarantee by the best single order; of a single order, all that it proves."""
    # The guarantee of one order is tight, unless it is so small that floats only bound it.
    points = curve.divergences if isinstance(curve, RenyiPoints) else ()
    tight = len(points) == 1 and points[0][1] * (points[0][0] - 1.0) >= _PRECISE
    delta, epsilon = partial(delta_by_orders, curve), partial(epsilon_by_orders, curve)
    return _of_tail(source, given, _ORDERS, delta, epsilon, tight=tight)


def _of_tail(
    source: Mechanism,
    given: Given,
    theorem: str,
    delta_at: Callable[[float], float],
    epsilon_at: Callable[[float], float],
    *,
    tight: bool = True,
) -> ApproxDP:
    """Return what a class whose losses have no largest value implies."""
    if given.delta is None:
        return _result(source, given, delta_at(_asked(given)), theorem, tight=tight)
    if given.delta == 0.0:
        reason = "its losses have no largest value, as delta = 0 would need"
        raise refused(source, "ApproxDP", reason)
    value = epsilon_at(given.delta) if given.delta < 1.0 else 0.0
    return _result(source, given, value, theorem, tight=tight)


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
        return proven(ApproxDP(_asked(given), value), theorem, tight=tight, lower=lower)
    if value == math.inf:
        reason = f"no finite epsilon has a delta as small as {given.delta:g}"
        raise refused(source, "ApproxDP", reason)
    return proven(ApproxDP(value, given.delta), theorem, tight=tight, lower=lower)


def _asked(given: Given) -> float:
    return math.inf if given.epsilon is None else given.epsilon
