"""Group privacy of trade-off functions.

Under (epsilon, delta)-DP it is the polygon of the power iterated, in exact arithmetic.

With ``A = e^epsilon`` and ``a = (1 - delta) / (1 + A)``, the power of one record is

    p(alpha) = delta + A alpha up to a,    1 - (1 - delta - alpha) / A up to 1 - delta,    then 1,

and that of g records its iterate ``p^og`` (Dong, Roth and Su 2022, theorem 2.14): no two data sets
at distance g of an (epsilon, delta)-DP mechanism are told apart with more power.

One mechanism attains it at all alpha at once. Let ``U = {0} or (0, 1]``, and ``P_j`` the
distribution on [0, 1] with ``P_j(U <= alpha) = p^oj(alpha)``, j = 0..g; release a draw of ``P_j``,
j the number of records, at most g. Since p is concave and rises, so are its iterates, and the
density of ``P_(j+1)`` over ``P_j`` at u is ``p'(p^oj(u))``, which falls with u: thresholds are the
best tests of both ``P_0`` against ``P_g`` and ``P_j`` against ``P_(j+1)``. These have power p where
``P_j`` has no mass at 0, and at rates below its mass there a chord of p: so neighbours are
(epsilon, delta)-close, in both orders since p is its own mirror, and the ends have ``p^og``.

The first side of ``p^og`` has slope ``e^(g epsilon)`` and begins at ``delta (A^g - 1) / (A - 1)``
as long as that of g - 1 records is at most a: then (g epsilon, that delta)-DP is attained. It is
not all: a group under epsilon-DP is told apart like discrete Laplace noise of scale 1/epsilon at
distance g, and less well than a randomized response of g epsilon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final, NamedTuple, final

import numpy as np

from hockeystick.numerics import ULP
from hockeystick.tradeoffs.base import Ends, TradeOff
from hockeystick.tradeoffs.functions.closed_forms import (
    GaussianTradeOff,
    LaplaceTradeOff,
    Outcomes,
    masses_of,
)
from hockeystick.tradeoffs.functions.piecewise import (
    Corners,
    IdentityTradeOff,
    PiecewiseLinearTradeOff,
    polyline_tradeoff,
)
from hockeystick.tradeoffs.profiles.one_order import FunctionProfile
from hockeystick.tradeoffs.profiles.profile import Array, ChainProfile, Flags, Profile
from hockeystick.tradeoffs.profiles.table import IntervalProfile

_ONE: Final = Fraction(1)


def approximate_group(
    growth: Fraction, delta: Fraction, size: int, *, relative_error: float
) -> PiecewiseLinearTradeOff:
    """Return ``1 - p^og`` of a growth A >= 1 and a delta below 1.

    For it to be a lower bound the growth is at least ``e^epsilon``; each mass may be off by the
    relative error.
    """
    alphas = _corners(growth, delta, size)
    points = [(alpha, 1 - _iterated(alpha, growth, delta, size)) for alpha in alphas]
    if points[0][1] < 1:
        points.insert(0, (Fraction(0), _ONE))
    masses = masses_of(points)
    corners = Corners.of(points, relative_error + 4.0 * ULP)
    return polyline_tradeoff(corners, Outcomes(masses, masses, relative_error))


def _corners(growth: Fraction, delta: Fraction, size: int) -> list[Fraction]:
    """Return the rates from 0 to 1 between which the iterate is linear."""
    found = {Fraction(0), _ONE}
    for start in ((1 - delta) / (1 + growth), 1 - delta):
        rate = start
        for _ in range(size):
            found.add(rate)
            if rate < delta:
                break
            rate = _inverse(rate, growth, delta)
    return sorted(found)


def _inverse(power: Fraction, growth: Fraction, delta: Fraction) -> Fraction:
    """Return the rate at which one record has a power that is at least delta."""
    bend = (growth + delta) / (1 + growth)
    steep = (power - delta) / growth
    return steep if power <= bend else 1 - delta - growth * (1 - power)


def _iterated(alpha: Fraction, growth: Fraction, delta: Fraction, size: int) -> Fraction:
    power = alpha
    for _ in range(size):
        if power >= 1 - delta:
            return _ONE
        power = min(delta + growth * power, 1 - (1 - delta - power) / growth)
    return power


# A complement below this is not resolved: the type II error is between 0 and this.
_TINY: Final = 1e-300
_STEPS: Final = 5_000


class _Rates(NamedTuple):
    """Rates: below 1/2 the rate itself, else, where ``complemented``, one minus the rate."""

    number: Array
    complemented: Flags

    def read(self, *, complemented: bool, sign: float) -> Array:
        """Return the rates, or their complements, rounded up (sign 1) or down (-1)."""
        other = (1.0 - self.number) * (1.0 + sign * ULP)
        return np.where(self.complemented == complemented, self.number, other)


@final
@dataclass(frozen=True)
class GroupTradeOff(TradeOff):
    """``1 - (1 - f)^og``: the power of one record, g times over.

    Made by ``group``, which knows closed forms where there are some, and mechanisms whose loss at
    distance g is known.

    Guarantees:
        Proven ends: the power is monotone, so proven ends of each step give those of the next.
        Rates below 1/2 are carried as they are, the others as their complements. Deltas are the
        smaller ones of the iterated function's and of a chain of single records (``ChainProfile``).

        The lower end of f, and with it the upper ends of power, delta and epsilon, holds for every
        mechanism that is f-DP and any two data sets at distance g.

        What the other ends promise depends on what f is. A function alone stands for the worst
        mechanism that is f-DP: at each alpha, three outcomes that only one test distinguishes
        attain the iterated function, so both ends enclose it. The function of a plan (``release``)
        is that of its worst pair of neighbours; the plan's worst pair at distance g may be anywhere
        from the iterated function up to f itself, since a group may be a single record, and so
        these ends are those of one record.
    """

    inner: TradeOff
    size: int

    @property
    def forward(self) -> Profile:
        return self._profile(self.inner.forward)

    @property
    def backward(self) -> Profile:
        return self.inverse()._profile(self.inner.backward)

    def _profile(self, one: Profile) -> Profile:
        """Return the profile; the largest loss and the mu of a dominating Gaussian grow g-fold."""
        mu = max(self.inner.forward.dominating_mu, self.inner.backward.dominating_mu)
        largest = one.supremum * self.size * (1.0 + 4.0 * ULP)
        function = FunctionProfile(self._iterated, largest, _times(mu, self.size))
        iterated = ChainProfile(function, one, self.size)
        return iterated if self.inner.release is None else IntervalProfile(one, iterated)

    @cached_property
    def _iterated(self) -> GroupTradeOff:
        """The iterated function of f without its release."""
        plain = self.inner.without_release
        return self if plain is self.inner else GroupTradeOff(plain, self.size)

    @property
    def is_symmetric(self) -> bool:
        return self.inner.is_symmetric

    def inverse(self) -> GroupTradeOff:
        return self if self.is_symmetric else GroupTradeOff(self.inner.inverse(), self.size)

    def _power(self, alpha: Array) -> Ends:
        high = self._iterated_power(alpha, up=True).read(complemented=False, sign=1.0)
        if self.inner.release is not None:
            low = self.inner._power(alpha).lower
        else:
            low = self._iterated_power(alpha, up=False).read(complemented=False, sign=-1.0)
        return Ends(np.maximum(low, alpha), np.minimum(high, 1.0))

    def _type_ii(self, alpha: Array) -> Ends:
        low = self._iterated_power(alpha, up=True).read(complemented=True, sign=-1.0)
        if self.inner.release is not None:
            high = self.inner._type_ii(alpha).upper
        else:
            high = self._iterated_power(alpha, up=False).read(complemented=True, sign=1.0)
        return Ends(np.maximum(low, 0.0), np.minimum(high, 1.0))

    def _iterated_power(self, alpha: Array, *, up: bool) -> _Rates:
        """Return the upper (or lower) end of the power, iterated g times."""
        complemented = alpha >= 0.5
        number = np.where(complemented, 1.0 - alpha, alpha)
        moving = np.flatnonzero(alpha < 1.0)
        for step in range(self.size):
            if not moving.size:
                break
            if step == _STEPS:
                # No proof beyond: the upper end is 1, and the power does not fall.
                if up:
                    number[moving], complemented[moving] = 0.0, True
                break
            before = _Rates(number[moving], complemented[moving])
            after = self._one_more_record(before, up=up)
            number[moving], complemented[moving] = after
            # A fixed point of one step stays there.
            same = (after.number == before.number) & (after.complemented == before.complemented)
            moving = moving[~(same | (after.complemented & (after.number == 0.0)))]
        return _Rates(number, complemented)

    def _one_more_record(self, before: _Rates, *, up: bool) -> _Rates:
        number, complemented = before.number.copy(), before.complemented.copy()
        power = self.inner._power(number[~complemented])
        # The power is never below the rate, whatever its lower end says.
        number[~complemented] = np.maximum(
            power.upper if up else power.lower, number[~complemented]
        )
        crossed = ~complemented & (number >= 0.5)
        for which, type_ii in (
            (crossed, self.inner._type_ii(before.number[crossed])),
            (complemented, self.inner.type_ii_of_complement(before.number[complemented])),
        ):
            number[which] = type_ii.lower if up else type_ii.upper
        complemented |= crossed
        # Of the upper end a tiny complement is rounded to 0; of the lower end up to the threshold.
        lost = complemented & (number < _TINY)
        number[lost] = 0.0 if up else _TINY
        return _Rates(number, complemented)


def group_of(f: TradeOff, size: int) -> TradeOff:
    """Return the function of a group of at least 2, rounded to the side of less privacy."""
    match f:
        case GaussianTradeOff():
            return GaussianTradeOff(_times(f.mu, size))
        case LaplaceTradeOff():
            scale = f.scale / size
            enough = math.isinf(scale) or Fraction(scale) * size <= Fraction(f.scale)
            return LaplaceTradeOff(scale if enough else math.nextafter(scale, 0.0))
        case IdentityTradeOff():
            return f
        case GroupTradeOff():
            return GroupTradeOff(f.inner, f.size * size)
        case _:
            return GroupTradeOff(f, size)


def _times(mu: float, size: int) -> float:
    product = mu * size
    enough = math.isinf(product) or Fraction(product) >= Fraction(mu) * size
    return product if enough else math.nextafter(product, math.inf)
