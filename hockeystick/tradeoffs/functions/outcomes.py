"""Two distributions over a few outcomes, exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Final, TypeAlias, final

from hockeystick.numerics import ULP, decimal

_Point: TypeAlias = tuple[Fraction, Fraction]
Masses: TypeAlias = tuple[_Point, ...]

# The largest number of outcomes that are kept one by one.
_MOST: Final = 10_000
# The largest relative difference of the two readings.
_LARGEST_DIFFERENCE: Final = Fraction(1, 10**12)


@final
@dataclass(frozen=True, slots=True)
class Outcomes:
    """The masses of outcomes under P and Q, by descending q/p, of sum 1 each, in two readings.

    ``decimal`` has the decimals that the numbers print as, over their sum. ``binary``, the exact
    floats over theirs, and both sums lie within the relative distance ``relative_error``.
    """

    decimal: Masses
    binary: Masses
    relative_error: float

    def inverse(self) -> Outcomes:
        """Return them with P and Q exchanged."""
        return Outcomes(_swapped(self.decimal), _swapped(self.binary), self.relative_error)

    @classmethod
    def of(cls, p: Sequence[float], q: Sequence[float]) -> Outcomes | None:
        """Return the outcomes with these probabilities."""
        if len(p) > _MOST:
            return None
        decimal_readings = [[decimal(one) for one in side] for side in (p, q)]
        binary = [[Fraction(one) for one in side] for side in (p, q)]
        distance = max(abs(sum(side, Fraction(0)) - 1) for side in (*binary, *decimal_readings))
        decimals, floats = (
            tuple(zip(*map(_scaled, two), strict=True)) for two in (decimal_readings, binary)
        )
        return cls._within(decimals, floats, distance)

    @classmethod
    def between(cls, corners: Sequence[_Point], others: Sequence[_Point]) -> Outcomes | None:
        """Return the outcomes whose masses are the sides of a polygon, in the two readings."""
        if len(corners) != len(others) or len(corners) > _MOST:
            return None
        decimals, floats = (
            tuple((b[0] - a[0], a[1] - b[1]) for a, b in pairwise(one)) for one in (corners, others)
        )
        return cls._within(decimals, floats, Fraction(0))

    @classmethod
    def _within(cls, decimal: Masses, binary: Masses, distance: Fraction) -> Outcomes | None:
        """Return both readings, None where they differ by more than rounding."""
        for pair in zip(decimal, binary, strict=True):
            for one, two in zip(*pair, strict=True):
                if (one == 0) != (two == 0):
                    return None
                distance = max(distance, abs(two / one - 1) if one else distance)
        if distance > _LARGEST_DIFFERENCE:
            return None
        return cls(decimal, binary, float(distance) * (1.0 + 4.0 * ULP))


def _scaled(side: Sequence[Fraction]) -> list[Fraction]:
    """Return numbers over their sum."""
    total = sum(side, Fraction(0))
    return [one / total for one in side]


def _swapped(masses: Masses) -> Masses:
    """Return the masses with P and Q exchanged."""
    return tuple((q, p) for p, q in reversed(masses))
