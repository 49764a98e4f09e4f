"""What groups cost under epsilon-DP and (epsilon, delta)-DP: the worst release there is."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from hockeystick.errors import NoGroupFormError
from hockeystick.notions.base import Notion, group_size
from hockeystick.notions.fdp import FDP
from hockeystick.numerics import ULP, largest_reading
from hockeystick.numerics.rounding import DIGITS, as_mpf, fraction_of
from hockeystick.numerics.working_precision import working_digits
from hockeystick.tradeoffs.operations.approximate_group import approximate_group

# The largest group, whose polygon has up to twice as many sides, and the largest loss of one.
_MOST: Final = 50
_LARGEST: Final = 600.0


def worst_group(one: Notion, epsilon: float, delta: float, size: int) -> FDP:
    """Return the guarantee of a group of at least 2, which is attained, or raise.

    Args:
        one: The guarantee for one record.
        epsilon: Its epsilon, finite.
        delta: Its delta, below 1.
        size: How many records are in the group.
    """
    g = group_size(size)
    if g > _MOST or (g + 1) * epsilon > _LARGEST:
        raise NoGroupFormError(
            f"what a {one} costs groups of {g:,} is not computed exactly beyond groups of {_MOST} "
            f"and (g + 1) epsilon {_LARGEST:g}; .group({g}) has a bound: {one.group(g)}"
        )
    from hockeystick.numerics.multiprecision import mp

    with working_digits(DIGITS):
        power = mp.exp(as_mpf(largest_reading(epsilon)))
        # Above what 40 digits lose.
        above = fraction_of(power * (1 + mp.mpf(10) ** (3 - DIGITS)))
    growth = above if epsilon else Fraction(1)
    error = 8.0 * ULP * (1.0 + g * (1.0 + epsilon))
    return FDP(approximate_group(growth, largest_reading(delta), g, relative_error=error))
