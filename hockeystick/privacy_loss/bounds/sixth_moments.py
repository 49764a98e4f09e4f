"""Crude bounds by the sixth moment of a loss: of its moments beyond the last cells.

Of an event E of probability p, with ``k <= 3`` and ``S = E[L^6]`` (Cauchy-Schwarz and Lyapunov),

    E[(|L| + a)^k; E] <= sqrt(p) (32 (S + a^6))^(k/6).

Where a loss is no more than ``a + b |Z|`` of a normal Z, ``S <= 32 (a^6 + 15 b^6)``.
"""

from __future__ import annotations

import math
from typing import Final

# The sixth power of larger losses is infinite.
_LARGEST: Final = 1e40
# Covers the few roundings of each formula.
_OUTWARD: Final = 1.0 + 2.0**-40


def tail_moment(mass: float, sixth: float, power: int, offset: float) -> float:
    """Return a bound of ``E[(|L| + offset)^power]`` over an event of at most this mass."""
    largest = 32.0 * (sixth + offset**6)
    return math.sqrt(mass) * float(largest ** (power / 6.0)) * _OUTWARD


def sixth_moment_of_normal(offset: float, slope: float) -> float:
    """Return the bound of ``E[(a + b |Z|)^6]``."""
    return 32.0 * (sixth_power(offset) + 15.0 * sixth_power(slope))


def sixth_power(size: float) -> float:
    """Return the sixth power, rounded up; inf where it overflows."""
    return size**6 * _OUTWARD if size < _LARGEST else math.inf
