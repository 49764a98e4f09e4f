"""What convexity says of a trade-off function between points above it."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

import numpy as np

from hockeystick.numerics import ULP
from hockeystick.tradeoffs.profiles.profile import Array

_SMALLEST: Final = 4 * 5e-324
_Point: TypeAlias = tuple[float, float]


class Roof(NamedTuple):
    """The lower convex envelope of points that lie on or above a convex function."""

    alpha: Array
    beta: Array

    @classmethod
    def of(cls, alpha: Array, beta: Array) -> Roof:
        """Return the envelope of the points and of (0, 1) and (1, 0)."""
        x, y = np.r_[0.0, alpha, 1.0], np.r_[1.0, beta, 0.0]
        order = np.lexsort((y, x))
        return cls(*np.array(lower_envelope(x[order], y[order])).T)

    def at(self, alpha: Array) -> Array:
        """Return the envelope, rounded up."""
        k = np.clip(np.searchsorted(self.alpha, alpha), 1, self.alpha.size - 1)
        near, far = self.alpha[k - 1], self.alpha[k]
        share = (alpha - near) / (far - near)
        chord = self.beta[k - 1] * (1.0 - share) + self.beta[k] * share
        return np.asarray(chord * (1.0 + 16.0 * ULP) + _SMALLEST + 4.0 * ULP * self.beta[k - 1])


def lower_envelope(x: Array, y: Array) -> list[_Point]:
    """Return the corners of the lower convex envelope of points by rising x, then rising y."""
    kept: list[_Point] = []
    for point in zip(x.tolist(), y.tolist(), strict=True):
        if kept and point[0] == kept[-1][0]:
            continue
        while len(kept) > 1 and is_above(kept[-2], kept[-1], point):
            kept.pop()
        kept.append(point)
    return kept


def is_above(first: _Point, middle: _Point, last: _Point) -> bool:
    """Return whether the middle one of three points is on or above the chord of the others."""
    (x0, y0), (x1, y1), (x2, y2) = first, middle, last
    return (y1 - y0) * (x2 - x0) >= (y2 - y0) * (x1 - x0)
