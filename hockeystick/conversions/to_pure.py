"""What implies pure differential privacy: only what bounds every loss."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import singledispatch
from typing import TypeVar

from hockeystick.accountants import epsilon
from hockeystick.conversions._given import Given
from hockeystick.conversions._reasons import FAILS, UNBOUNDED, exact, refuse, through, told
from hockeystick.errors import IncompatibleError
from hockeystick.mechanisms import Mechanism
from hockeystick.notions import FDP, GDP, TCDP, ZCDP, ApproxDP, Notion, PureDP, RenyiDP

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
