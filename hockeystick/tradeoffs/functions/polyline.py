"""Piecewise linear trade-off functions by their corners, with the complements of both rates.

A corner is (alpha, beta) with ``power = 1 - beta`` and ``rest = 1 - alpha``, each of the four to
full relative precision, in both tails. The exact corners are within a relative
``slack`` of these. Since power is concave in alpha and monotone, and beta is monotone in the rest,
reading the polygon at a rate moved by twice the slack, outward, covers that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Final, final

import numpy as np

from hockeystick.numerics import ULP
from hockeystick.tradeoffs.base import Ends
from hockeystick.tradeoffs.profiles.profile import Array, Profile, ProfileValues

# Below the least normal number, where relative errors mean nothing.
_TINY: Final = 1e-307
# Slopes are cut at this, above every e^epsilon that is asked for.
STEEPEST: Final = 1e308
_LARGEST_EXPONENT: Final = 709.0
_MOST_KNOTS: Final = 200
_Point = tuple[Fraction, Fraction]


@final
@dataclass(frozen=True)
class Corners(Profile):
    """The corners by increasing alpha, from (0, 1) to (1, 0), as a profile of (Q, P).

    ``delta(eps) = max over corners of power - e^eps alpha``; the best corner is where the sides
    become flatter than e^eps.

    Args:
        alphas: The false positive rates, from 0 to 1.
        powers: The true positive rates, from 0 to 1.
        rests: One less the false positive rates.
        betas: One less the true positive rates.
        ratios: Minus the slope of each side; inf where vertical.
        slack: The relative error of each of these numbers.
    """

    alphas: tuple[float, ...]
    powers: tuple[float, ...]
    rests: tuple[float, ...]
    betas: tuple[float, ...]
    ratios: tuple[float, ...]
    slack: float

    def inverse(self) -> Corners:
        """Return the corners of the inverse function."""
        turned = (self.betas[::-1], self.rests[::-1], self.powers[::-1], self.alphas[::-1])
        return Corners(*turned, tuple(_over(ratio) for ratio in self.ratios[::-1]), self.slack)

    @cached_property
    def _arrays(self) -> tuple[Array, Array, Array, Array]:
        """Alphas and powers, and backward rests and betas: rising, and not upright at 0."""
        last = len(self.alphas) - self.ratios.count(0.0)
        pair = (np.array(self.alphas[self._start :]), np.array(self.powers[self._start :]))
        return *pair, np.array(self.rests[last - 1 :: -1]), np.array(self.betas[last - 1 :: -1])

    @property
    def _start(self) -> int:
        """The corner where the sides at alpha = 0 end."""
        return self.ratios.count(math.inf)

    def power(self, alpha: Array) -> Ends:
        """Return the true positive rate at a false positive rate."""
        alphas, powers, _, _ = self._arrays
        ends = self._ends(alphas, powers, alpha)
        return Ends(ends.lower, np.minimum(ends.upper, 1.0))

    def type_ii(self, rest: Array) -> Ends:
        """Return the false negative rate at one less the false positive rate."""
        _, _, rests, betas = self._arrays
        return self._ends(rests, betas, rest)

    def _ends(self, x: Array, y: Array, at: Array) -> Ends:
        """Return the interpolated polygon, the rate moved outward by twice the slack."""
        off = 2.0 * self.slack + 4.0 * ULP
        tiny = np.where(at > 0.0, _TINY, 0.0)
        low = _through(x, y, np.maximum(at * (1.0 - off) - tiny, 0.0), lowest=True)
        high = _through(x, y, np.minimum(at * (1.0 + off) + tiny, 1.0), lowest=False)
        return Ends(
            np.maximum(low * (1.0 - 4.0 * off) - tiny, 0.0), high * (1.0 + 4.0 * off) + tiny
        )

    @property
    def _margin(self) -> float:
        """The relative error of a side's ratio against e^epsilon."""
        return 4.0 * self.slack + 32.0 * ULP

    @property
    def smooth(self) -> bool:
        """False: its losses are atoms."""
        return False

    @property
    def breakpoints(self) -> Array:
        inside = [one for one in self.ratios if 1.0 < one < STEEPEST]
        return np.asarray(np.log(np.array(inside if len(inside) <= _MOST_KNOTS else [])))

    @property
    def infinity_mass_lower(self) -> float:
        """The true positive rate at false positive rate 0, rounded down."""
        return self.powers[self._start] * max(1.0 - 4.0 * self._margin, 0.0)

    @property
    def supremum(self) -> float:
        steepest = max((one for one in self.ratios if one < math.inf), default=0.0)
        if steepest >= STEEPEST / 10.0:
            return math.inf
        loss = math.log(max(steepest, 1.0))
        return loss and loss * (1.0 + 4.0 * ULP) + 2.0 * self._margin

    def at(self, epsilon: Array) -> ProfileValues:
        """Return delta by the maximising corner: exact but for round-off."""
        alphas, powers, _, _ = self._arrays
        steps = -np.array(self.ratios[self._start :])
        x = np.exp(np.minimum(epsilon, _LARGEST_EXPONENT))
        margin = self._margin
        # A corner too far to the right costs less than the margin; one too early has no such bound.
        corner = np.searchsorted(steps, -x * (1.0 - margin), side="right")
        power, line = powers[corner], x * alphas[corner]
        estimate = np.maximum(power - line, 0.0)
        off = 2.0 * margin * (power + line)
        lower, upper = np.maximum(estimate - off, 0.0), np.minimum(estimate + off, 1.0)
        constant = corner == 0
        lower = np.where(
            (epsilon > _LARGEST_EXPONENT) | constant, powers[0] * (1.0 - margin), lower
        )
        upper = np.where(constant, min(powers[0] * (1.0 + margin), 1.0), upper)
        return ProfileValues(lower, np.clip(estimate, lower, upper), upper, -line)


def _through(x: Array, y: Array, at: Array, *, lowest: bool) -> Array:
    """Return the interpolated polygon, its lower or upper end where it is vertical."""
    end = np.searchsorted(x, at, side="left" if lowest else "right")
    end = np.clip(end, 1, len(x) - 1)
    width = x[end] - x[end - 1]
    upright = width <= 0.0
    share = np.clip((at - x[end - 1]) / np.where(upright, 1.0, width), 0.0, 1.0)
    share = np.where(upright, 0.0 if lowest else at >= x[end], share)
    return np.asarray(y[end - 1] + share * (y[end] - y[end - 1]))


def _over(ratio: float) -> float:
    """Return the reciprocal of a side's ratio, 0 and inf included."""
    if ratio == 0.0:
        return math.inf
    return 0.0 if ratio == math.inf else min(1.0 / ratio, STEEPEST)


def hull(points: Sequence[_Point]) -> Corners:
    """Return the lower convex envelope of the points, (0, 1) and (1, 0), in exact arithmetic."""
    kept = corners_of(points)
    return Corners(
        tuple(float(alpha) for alpha, _ in kept),
        tuple(float(1 - beta) for _, beta in kept),
        tuple(float(1 - alpha) for alpha, _ in kept),
        tuple(float(beta) for _, beta in kept),
        tuple(_ratio(near, far) for near, far in pairwise(kept)),
        ULP,
    )


def corners_of(points: Sequence[_Point]) -> list[_Point]:
    """Return the exact corners of that envelope, from (0, 1) to (1, 0)."""
    kept: list[_Point] = []
    for point in sorted(
        {*points, (Fraction(0), Fraction(1)), (Fraction(1), Fraction(0))}, key=_key
    ):
        while len(kept) > 1 and not _turns(kept[-2], kept[-1], point):
            kept.pop()
        kept.append(point)
    return kept


def _key(point: _Point) -> _Point:
    """Return the sort key: alpha ascending, then beta descending."""
    return point[0], -point[1]


def _turns(first: _Point, middle: _Point, last: _Point) -> bool:
    """Return whether the path turns left at the middle, so that it is a corner from below."""
    run, rise = middle[0] - first[0], middle[1] - first[1]
    return run * (last[1] - first[1]) > rise * (last[0] - first[0])


def _ratio(near: _Point, far: _Point) -> float:
    """Return minus the slope of a side; inf where vertical."""
    run, fall = far[0] - near[0], near[1] - far[1]
    if run == 0:
        return math.inf
    return float(min(fall / run, Fraction(10**308)))
