"""Group privacy of trade-off functions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from typing import Final, Protocol, final, runtime_checkable

import numpy as np

from hockeystick import _validate
from hockeystick._validate import MAX_COUNT, Domain
from hockeystick.tradeoffs._tails import gaussian_above
from hockeystick.tradeoffs.base import Ends, TradeOff
from hockeystick.tradeoffs.by_function import FunctionProfile
from hockeystick.tradeoffs.gaussian import GaussianTradeOff
from hockeystick.tradeoffs.laplace import LaplaceTradeOff
from hockeystick.tradeoffs.piecewise import IdentityTradeOff
from hockeystick.tradeoffs.profile import Array, Profile

_ULP: Final = 2.0**-52
# Below it a rate counts as lost: what is missed is between 0 and this.
_TINY: Final = 1e-300
_STEPS: Final = 5_000
SIZE: Final = Domain(symbol="g", low=1, high=MAX_COUNT, typical=(1, 100), whole=True)


@runtime_checkable
class _PreciseAtOne(Protocol):
    """A function that keeps its digits where alpha is next to 1."""

    def miss_of_rest(self, rest: Array) -> Ends:
        """Return f(1 - rest)."""


@final
@dataclass(frozen=True, slots=True)
class GroupTradeOff(TradeOff):
    """``1 - (1 - f)^og``: the power of one record, g times over.

    Made by ``group``, which knows closed forms where there are some.

    Guarantees:
        Proven ends: the power is monotone, so proven ends of each step give those of the next.
        Rates below 1/2 are carried as they are, the others as their complements.
    """

    inner: TradeOff
    size: int

    @property
    def forward(self) -> Profile:
        """The profile of (Q, P), from the function."""
        return self._profile(self.inner.forward)

    @property
    def backward(self) -> Profile:
        """The profile of (P, Q), from the inverse."""
        return self.inverse()._profile(self.inner.backward)

    def _profile(self, one: Profile) -> Profile:
        """Return the profile; losses add up to at most g times the largest, and so do Gaussians."""
        mu = max(gaussian_above(self.inner.forward), gaussian_above(self.inner.backward))
        largest = one.supremum * self.size * (1.0 + 4.0 * _ULP)
        return FunctionProfile(self, largest, _times(mu, self.size))

    @property
    def is_symmetric(self) -> bool:
        """Whether the inner function is."""
        return self.inner.is_symmetric

    def inverse(self) -> GroupTradeOff:
        """Return the group of the inverse."""
        if self.is_symmetric:
            return self
        return GroupTradeOff(self.inner.inverse(), self.size)

    def _power(self, alpha: Array) -> Ends:
        """Return 1 - f."""
        low, high = self._walk(alpha, up=False), self._walk(alpha, up=True)
        lower = np.where(np.signbit(low), (1.0 + low) * (1.0 - _ULP), low)
        upper = np.where(np.signbit(high), (1.0 + high) * (1.0 + _ULP), high)
        return Ends(np.maximum(lower, alpha), np.minimum(upper, 1.0))

    def _miss(self, alpha: Array) -> Ends:
        """Return f."""
        low, high = self._walk(alpha, up=True), self._walk(alpha, up=False)
        upper = np.where(np.signbit(high), -high, (1.0 - high) * (1.0 + _ULP))
        return Ends(_missed(low), np.minimum(upper, 1.0))

    def _proven_miss(self, alpha: Array) -> Array:
        """Return the lower end of f."""
        return _missed(self._walk(alpha, up=True))

    def _walk(self, alpha: Array, *, up: bool) -> Array:
        """Return the upper (or lower) end of the power; above 1/2 less one, so never positive."""
        place = np.where(alpha < 0.5, alpha, -(1.0 - alpha))
        moving = np.flatnonzero(alpha < 1.0)
        for step in range(self.size):
            if not moving.size:
                break
            if step == _STEPS:
                # No proof beyond: the upper end is 1, and the power does not fall.
                place[moving] = -0.0 if up else place[moving]
                break
            before = place[moving]
            after = self._step(before, up=up)
            place[moving] = after
            # What a step leaves where it is stays there.
            moving = moving[(after != before) & ~((after == 0.0) & np.signbit(after))]
        return place

    def _step(self, place: Array, *, up: bool) -> Array:
        """Return the ends after one more record."""
        after, past = np.empty_like(place), np.signbit(place)
        power = self.inner._power(place[~past])
        after[~past] = power.upper if up else power.lower
        crossed = ~past & (after >= 0.5)
        for which, missed in (
            (crossed, self.inner._miss(place[crossed])),
            (past, missed_of_rest(self.inner, -place[past])),
        ):
            after[which] = -(missed.lower if up else missed.upper)
        # A complement of the upper end that is nearly 0 may be 0; one of the lower end stays.
        lost = np.signbit(after) & (after > -_TINY)
        after[lost] = -0.0 if up else -_TINY
        return after


def group(f: TradeOff, size: int) -> TradeOff:
    """Return ``1 - (1 - f)^og``, the trade-off function for groups of g records.

    A mechanism that is f-DP for one record is that for any g records; with f Gaussian or Laplace
    it is again of that kind, with g times the distance.

    Guarantees:
        Exact for the kinds named, proven ends otherwise.

    Edge cases:
        Size 1 is f itself.

    Args:
        f: The trade-off function for one record.
        size: The number g of records, an integer from 1 to 10^15. Where there is no closed form the
            work grows with it until the power reaches 1, which after 5,000 steps it counts as.

    Returns:
        The function; its call returns proven lower ends, as always.

    Raises:
        ParameterError: If the size is no such integer.

    References:
        Dong, Roth and Su, "Gaussian Differential Privacy", JRSS B 2022, theorem 2.14.

    Example:
        >>> import hockeystick as hs
        >>> from hockeystick.tradeoffs.group import group
        >>> from hockeystick.tradeoffs.piecewise import ApproxTradeOff
        >>> group(hs.GaussianTradeOff(0.5), 3)
        GaussianTradeOff(mu=1.5)
        >>> print(f"{group(ApproxTradeOff(1.0, 1e-6), 3).power(0.0):.10e}")
        1.1107337927e-05
    """
    g = _validate.count("size", size, SIZE)
    return f if g == 1 else grown(f, g)


@singledispatch
def grown(f: TradeOff, size: int) -> TradeOff:
    """Return the function of a group of at least 2."""
    return GroupTradeOff(f, size)


@grown.register
def _(f: GaussianTradeOff, size: int) -> TradeOff:
    """Return G_(g mu), rounded to the side of less privacy."""
    return GaussianTradeOff(_times(f.mu, size))


@grown.register
def _(f: LaplaceTradeOff, size: int) -> TradeOff:
    """Return the one of scale / g, rounded down."""
    scale = f.scale / size
    enough = math.isinf(scale) or Fraction(scale) * size <= Fraction(f.scale)
    return LaplaceTradeOff(scale if enough else math.nextafter(scale, 0.0))


@grown.register
def _(f: IdentityTradeOff, size: int) -> TradeOff:
    """Return the identity."""
    return f


@grown.register
def _(f: GroupTradeOff, size: int) -> TradeOff:
    """Return the group of groups."""
    return GroupTradeOff(f.inner, f.size * size)


def missed_of_rest(f: TradeOff, rest: Array) -> Ends:
    """Return f(1 - rest) for rests up to 1/2, with their relative precision where f has it."""
    if isinstance(f, _PreciseAtOne):
        return f.miss_of_rest(rest)
    alpha = 1.0 - rest
    lower = f._miss(np.minimum(alpha + _ULP, 1.0)).lower
    return Ends(lower, f._miss(np.maximum(alpha - _ULP, 0.0)).upper)


def _missed(place: Array) -> Array:
    """Return the lower end of what is missed, from the upper end of the power."""
    lower = np.where(np.signbit(place), -place, (1.0 - place) * (1.0 - _ULP))
    return np.maximum(lower, 0.0)


def _times(mu: float, size: int) -> float:
    """Return the product, rounded up."""
    product = mu * size
    enough = math.isinf(product) or Fraction(product) >= Fraction(mu) * size
    return product if enough else math.nextafter(product, math.inf)
