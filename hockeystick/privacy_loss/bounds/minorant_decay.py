"""The decay of a transform by a uniform minorant of its density."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from hockeystick.kernels.series import Array


@final
@dataclass(frozen=True, slots=True)
class MinorantDecay:
    """A uniform minorant (widths, masses) of a density, and the density's total variation."""

    width: Array
    mass: Array
    variation: float

    def exponent(self, y: float) -> float:
        """Return a lower bound of ``-ln|M(c + i v)| / M(c)`` for all ``v >= y``."""
        from hockeystick.kernels import uniform_minorant

        return float(uniform_minorant.minorant_exponent(self.width, self.mass, self.variation, y))
