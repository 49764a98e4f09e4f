"""A grid of a power of two for real numbers, so fine that rounding to it costs next to no noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from hockeystick.errors import ParameterError
from hockeystick.mechanisms.base import Mechanism
from hockeystick.numerics import largest_reading
from hockeystick.numerics.rounding import float_up
from hockeystick.release._values import MOST, sensitivity_of
from hockeystick.release.samplers.rounded import SCALE

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The step is at most 2^-20 of the sensitivity, and what rounding adds to it at most 2^-16 of it.
_STEP_BITS: Final = 20
_ADDED_BITS: Final = 16


@dataclass(frozen=True, slots=True)
class Grid:
    """The multiples of ``2^exponent``, and noise on them.

    Args:
        exponent: The logarithm of the step.
        sensitivity: How far an answer on the grid moves between neighbours, in steps.
        scale: The noise's scale in steps, at least the mechanism's times the sensitivity.
    """

    exponent: int
    sensitivity: Fraction
    scale: float

    def steps(self, name: str, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return numbers rounded to the grid, each by at most half a step, in steps; or raise.

        A power of two times a float is exact wherever the result is at least one step.
        """
        with np.errstate(over="ignore", under="ignore"):
            rounded = np.rint(np.ldexp(values, -self.exponent))
        if not bool((np.abs(rounded) <= MOST).all()):
            most = math.log2(MOST) + self.exponent
            raise ParameterError(name, "a larger one", f"numbers up to 2^{most:.0f} in size")
        return rounded.astype(np.int64)

    def floats(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return numbers of steps as floats; what is rounded above 2^53 is post-processing."""
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(np.ldexp(steps.astype(np.float64), self.exponent))


def grid_of(
    mechanism: Mechanism, noise: float, sensitivity: object, moved: int, *, most: float = SCALE.high
) -> Grid:
    """Return a grid for a mechanism's noise; a function of the arguments alone, never of the data.

    Args:
        mechanism: The mechanism, for errors.
        noise: Its noise's scale over the sensitivity, a number >= 0.
        sensitivity: How far an answer moves between neighbours, as a caller gives it.
        moved: How many steps, at most, rounding adds to the distance of two answers.
        most: The largest scale that is drawn.
    """
    own = sensitivity_of(sensitivity)
    # Rounding alone needs no more than half of the largest scale.
    if not noise * moved <= most / 2.0:
        half = f"2^{math.log2(most) - 1.0:.3g}"
        limit = f"{half} / {moved:,}" if moved > 1 else half
        allowed = f"of noise up to {limit} times the sensitivity"
        raise ParameterError("mechanism", mechanism, allowed)
    finer = max(_STEP_BITS, _ADDED_BITS + (moved - 1).bit_length())
    exponent = math.frexp(float(own))[1] - 1 - finer
    while True:
        distance = own / Fraction(2) ** exponent + moved
        scale = float_up(largest_reading(noise) * distance)
        if scale <= most:
            return Grid(exponent, distance, scale)
        exponent += 1
