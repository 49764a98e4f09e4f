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

# More outcomes than these are not told apart.
_MOST: Final = 10_000
# Where the two readings of the numbers differ by more, none of them is taken.
_LARGEST_DIFFERENCE: Final = Fraction(1, 10**12)


@final
@dataclass(frozen=True, slots=True)
class Outcomes:
    """The masses of outcomes under P and Q, by falling q/p, of sum 1 each, in two readings.

    The numbers are the decimals that they print as, over their sum; those that the floats are lie
    within the relative distance ``off`` of them, and so do both sums of 1.
    """

    decimal: Masses
    binary: Masses
    off: float

    def inverse(self) -> Outcomes:
        """Return them with P and Q exchanged."""
        return Outcomes(_turned(self.decimal), _turned(self.binary), self.off)

    @classmethod
    def of(cls, p: Sequence[float], q: Sequence[float]) -> Outcomes | None:
        """Return the outcomes with these probabilities."""
        if len(p) > _MOST:
            return None
        printed = [[decimal(one) for one in side] for side in (p, q)]
        binary = [[Fraction(one) for one in side] for side in (p, q)]
        distance = max(abs(sum(side, Fraction(0)) - 1) for side in (*binary, *printed))
        decimals, floats = (
            tuple(zip(*map(_scaled, two), strict=True)) for two in (printed, binary)
        )
        return cls._within(decimals, floats, distance)

    @classmethod
    def between(cls, corners: Sequence[_Point], others: Sequence[_Point]) -> Outcomes | None:
        """Return the outcomes that the sides of a polygon are, in the two readings."""
        if len(corners) != len(others) or len(corners) > _MOST:
            return None
        decimals, floats = (
            tuple((b[0] - a[0], a[1] - b[1]) for a, b in pairwise(one)) for one in (corners, others)
        )
        return cls._within(decimals, floats, Fraction(0))

    @classmethod
    def _within(cls, decimal: Masses, binary: Masses, distance: Fraction) -> Outcomes | None:
        """Return both readings, None where they are farther from each other than rounding."""
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


def _turned(masses: Masses) -> Masses:
    """Return the masses with P and Q exchanged."""
    return tuple((q, p) for p, q in reversed(masses))
