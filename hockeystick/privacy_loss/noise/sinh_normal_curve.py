"""The privacy loss of sinh-normal noise as a curve, and its inverse, in floats with proven errors.

With ``v = 1/(2A)`` and ``k = rho A^2 sinh(2v)`` the loss at the output ``1/2 + A u`` is

    l(u) = k sinh(2u) - ln(cosh(u + v) / cosh(u - v)),

odd in u. As ``rho A^2 >= 1``, what is subtracted is at most half of the first term, and so are the
slopes: ``k cosh(2u) <= l'(u) <= 2 k cosh(2u)``; for u >= 0 it is convex.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from hockeystick.numerics import ULP, decimal
from hockeystick.numerics.working_precision import working_digits
from hockeystick.privacy_loss.core.uncertain_endpoints import UncertainEdges

if TYPE_CHECKING:
    from hockeystick.kernels.series import Array

_STEPS: Final = 40
# Outputs where both normal coordinates are beyond this have no mass at all.
_MOST_DEVIATIONS: Final = 1e10
# Cells up to this width (in u) have their width worked out without cancellation.
_NARROW: Final = 0.3
_DIGITS: Final = 40


class SinhNormalCurve(NamedTuple):
    """The constants of the curve, each within half a unit of what the decimals given make."""

    square: float
    """``rho A^2``."""
    strength: float
    """``k``."""
    scale: float
    """``A sqrt(2 rho)``, from ``sinh(u -+ v)`` to the normal coordinate."""
    half: float
    """``v``."""
    sinh_half: float
    """``sinh(v)``."""
    sinh: float
    """``sinh(2v)``."""
    cosh: float
    """``cosh(2v)``."""

    def loss(self, u: Array) -> tuple[Array, Array]:
        """Return the loss at ``u >= 0``, and a bound on its error."""
        ratio = 2.0 * np.sinh(u) * self.sinh_half / np.cosh(u - self.half)
        whole, less = self.strength * np.sinh(2.0 * u), np.log1p(ratio)
        return whole - less, ULP * (7.0 * whole + (18.0 + u + 2.0 * self.half) * less)

    def slope(self, u: Array) -> Array:
        """Return ``l'(u)``, to better than a thousandth."""
        grown = np.cosh(2.0 * u)
        return 2.0 * self.strength * grown - 2.0 * self.sinh / (grown + self.cosh)

    def normal_edges(self, edges: UncertainEdges, side: float) -> UncertainEdges:
        """Return edges in u as normal coordinates ``a sinh(u - side v)`` of one of the two."""
        x = edges.at - side * self.half
        unsure = edges.error + ULP * (np.abs(edges.at) + 2.0 * self.half)
        at = self.scale * np.sinh(x)
        error = 1.01 * self.scale * np.cosh(np.abs(x) + unsure) * unsure + 8.0 * ULP * np.abs(at)
        middle = 0.5 * (x[1:] + x[:-1])
        width = 2.0 * self.scale * np.cosh(middle) * np.sinh(0.5 * edges.width)
        moved = np.maximum(unsure[1:], unsure[:-1])
        width_error = 1.1 * edges.width_error + 1.1 * moved + 16.0 * ULP
        plain = np.diff(at)
        narrow = edges.width <= _NARROW
        rough = (error[1:] + error[:-1]) / np.maximum(plain, 1e-300) + 4.0 * ULP
        return UncertainEdges(
            at,
            np.where(np.isinf(at), 0.0, error),
            np.where(narrow, width, plain),
            np.where(narrow, width_error, np.where(np.isinf(plain), 0.0, rough)),
        )

    def outputs(self, edges: UncertainEdges) -> UncertainEdges:
        """Return the u at which the loss takes the values of edges, with proven errors."""
        size = np.abs(edges.at)
        # Outputs beyond this end have no mass, so that losses beyond its own are all alike.
        end = math.asinh(_MOST_DEVIATIONS / self.scale) + 2.0 * self.half + 1.0
        most = float(self.loss(np.array([end + 1.0]))[0][0])
        size = np.where(np.isfinite(size), np.minimum(size, most), size)
        u = self._solved(np.where(np.isinf(size), 0.0, size))
        value, unsure = self.loss(u)
        off = 1.01 * (np.abs(value - size) + unsure + edges.error) + 1e-320
        # The slope, at least k, is least where the true output may be nearest to the middle; and a
        # share of a convex loss is reached no nearer than at that share of the way.
        nearest = np.fmax(u - off / self.strength, u * (1.0 - 2.0 * off / value))
        error = off / self.slope(np.maximum(nearest, 0.0))
        u = np.where(np.isinf(size), math.inf, u)
        beyond = u - np.where(np.isinf(size), 0.0, error) > end
        u = np.where(beyond & np.isfinite(size), end, u)
        error = np.where(beyond, 0.0, error)
        at = np.copysign(u, edges.at)
        width, width_error = self._widths(edges, at, error)
        return UncertainEdges(at, error, width, width_error)

    def _solved(self, target: Array) -> Array:
        """Return u with l(u) near a target >= 0: Newton's method, from above where it is convex."""
        near = np.minimum(2.0 * target, target + 2.0 * self.half) / self.strength
        u: Array = 0.5 * np.arcsinh(near)
        for _ in range(_STEPS):
            step = (self.loss(u)[0] - target) / self.slope(u)
            u = np.maximum(u - step, 0.0)
            if bool((np.abs(step) <= 8.0 * ULP * u).all()):
                break
        return u

    def _widths(self, edges: UncertainEdges, at: Array, error: Array) -> tuple[Array, Array]:
        """Return the distances of neighbouring outputs, with bounds of the relative errors.

        Around the middle m of a cell of width h the loss grows by

            2 k cosh(2m) sinh(h) - ln(1 + 2 sinh(2v) sinh(h) / (cosh(2m) + cosh(h - 2v))).

        It is between half of its first term and all of it, so that a relative error of the growth
        makes at most twice that in h. Moving m by d changes it by at most ``5 d`` of itself, as
        ``|l''| <= 5 l'``.
        """
        plain = np.diff(at)
        grown = np.where(np.isfinite(edges.width), edges.width, 0.0)
        twice = np.cosh(at[1:] + at[:-1])
        width = grown / self.slope(0.5 * (at[1:] + at[:-1]))
        narrow = (plain <= _NARROW) & (width <= _NARROW) & (grown > 0.0)
        width = np.where(narrow, width, 0.0)
        for _ in range(_STEPS):
            value, steep = self._growth(twice, width)
            step = np.where(narrow, (value - grown) / steep, 0.0)
            width = width - step
            if bool((np.abs(step) <= 8.0 * ULP * width).all()):
                break
        left = np.abs(self._growth(twice, width)[0] - grown) / grown
        moved = np.maximum(error[1:], error[:-1])
        round_off = ULP * (64.0 + 4.0 * np.abs(at[1:] + at[:-1]) + 4.0 * self.half)
        width_error = 2.1 * (left + round_off + edges.width_error + 5.0 * moved)
        rough = (error[1:] + error[:-1]) / np.maximum(plain, 1e-300) + 4.0 * ULP
        rough = np.where(np.isinf(plain), 0.0, rough)
        return np.where(narrow, width, plain), np.where(narrow, width_error, rough)

    def _growth(self, twice: Array, width: Array) -> tuple[Array, Array]:
        """Return by how much the loss grows across cells, and the derivative, unproven."""
        sinh, cosh = np.sinh(width), np.cosh(width)
        shifted = width - 2.0 * self.half
        under = twice + np.cosh(shifted)
        ratio = 2.0 * self.sinh * sinh / under
        bend = 2.0 * self.sinh * (cosh * under - sinh * np.sinh(shifted)) / (under * under)
        value = 2.0 * self.strength * twice * sinh - np.log1p(ratio)
        return value, 2.0 * self.strength * twice * cosh - bend / (1.0 + ratio)


@lru_cache(maxsize=64)
def curve_of(rho: float, width: float) -> SinhNormalCurve:
    """Return the curve of parameters read as the decimals that they print as."""
    from hockeystick.numerics.multiprecision import mp
    from hockeystick.precision.profiles import exact

    with working_digits(_DIGITS):
        square, half = exact(square_of(rho, width)), 1 / (2 * exact(width))
        sinh = mp.sinh(2 * half)
        return SinhNormalCurve(
            float(square),
            float(square * sinh),
            float(mp.sqrt(2 * square)),
            float(half),
            float(mp.sinh(half)),
            float(sinh),
            float(mp.cosh(2 * half)),
        )


def square_of(rho: float, width: float) -> Fraction:
    """Return ``rho A^2``, exactly."""
    return decimal(rho) * decimal(width) ** 2
