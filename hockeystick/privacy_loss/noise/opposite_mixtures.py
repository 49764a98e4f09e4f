"""The loss of a Gaussian mixture against its mirror image."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple, final

import numpy as np

from hockeystick.numerics import ULP, Ball
from hockeystick.numerics.rounding import short_up
from hockeystick.privacy_loss.bounds.sixth_moments import sixth_moment_of_normal
from hockeystick.privacy_loss.core.base import Masses
from hockeystick.privacy_loss.core.cell_loss import UnboundedLoss
from hockeystick.privacy_loss.core.interval_masses import cgf_bounds
from hockeystick.privacy_loss.core.uncertain_endpoints import (
    DensityLoss,
    UncertainEdges,
    log_mixture,
)
from hockeystick.privacy_loss.noise.normal_masses import log_masses

if TYPE_CHECKING:
    from hockeystick.kernels.series import Array

_STEPS: Final = 200
# A slope that changes by no more than this share is as good as constant.
_STEADY: Final = 0.04
# Exponents beyond this are taken as infinite.
_LARGEST_EXPONENT: Final = 500.0


@final
@dataclass(frozen=True, slots=True)
class OppositeMixturesLoss(UnboundedLoss, DensityLoss):
    """The loss of ``sum_k w_k N(m_k, 1)`` against ``sum_k w_k N(-m_k, 1)``, all ``m_k >= 0``.

    At the output x it is ``T(x) - T(-x)`` with ``T(x) = ln sum_k w_k exp(m_k x - m_k^2/2)``: odd,
    and rising, as T rises. It is the same in both directions. The distances ascend.
    """

    distances: tuple[Fraction, ...]
    weights: tuple[Fraction, ...]

    @property
    def opposite(self) -> OppositeMixturesLoss:
        return self

    @property
    def dominating_mu_squared(self) -> Fraction:
        """That of twice the largest distance: the mixtures have the same weights."""
        return short_up(4 * max(self.distances) ** 2)

    @property
    def sixth_moment_upper(self) -> float:
        """That of the largest m: ``|T'| <= m``, so that the loss is at most ``2 m |x|``."""
        farthest = float(max(self.distances))
        return sixth_moment_of_normal(2.0 * farthest * farthest, 2.0 * farthest)

    def cgf_bounds(self, c: float) -> Ball:
        """Return K from cells, and where these leave it open no more than its convex bound."""
        return cgf_bounds(self, c, self.cgf_upper)

    def cgf_upper(self, c: float) -> float:
        """Return ``ln sum_k w_k exp(2 c (c+1) m_k^2)``, rounded up: powers are convex."""
        rate = 2.0 * c * (c + 1.0) * (1.0 + 16.0 * ULP)
        upper = rate * float(max(self.distances)) ** 2
        if upper < _LARGEST_EXPONENT:
            pairs = zip(self.distances, self.weights, strict=True)
            terms = [float(w) * math.expm1(rate * float(m) ** 2) for m, w in pairs]
            upper = math.log1p(math.fsum(terms)) * (1.0 + (64.0 + 8.0 * upper) * ULP)
        return upper

    def uncertain_cells(self, edges: UncertainEdges) -> Masses:
        with np.errstate(all="ignore"):
            curve = _OddCurve.of(self.distances, self.weights)
            at = curve.outputs(edges)
            (log_p, error_p), (log_q, error_q) = (curve.masses(at, side) for side in (1.0, -1.0))
        return Masses(log_p, log_q, np.maximum(error_p, error_q))


class _Reading(NamedTuple):
    """A function's value and slope at some outputs, and the error of the value."""

    value: Array
    slope: Array
    error: Array


class _OddCurve(NamedTuple):
    """The loss as a function of the output, with parameters each within half a unit."""

    distances: Array
    weights: Array

    @classmethod
    def of(cls, distances: Sequence[Fraction], weights: Sequence[Fraction]) -> _OddCurve:
        """Return the curve with its parameters rounded."""
        return cls(np.array([float(m) for m in distances]), np.array([float(w) for w in weights]))

    def masses(self, at: UncertainEdges, side: float) -> tuple[Array, Array]:
        """Return the masses of cells of the output under one of the mixtures, and errors."""
        found = (np.full(at.width.size, -math.inf), np.zeros(at.width.size))
        for distance, weight in zip(self.distances, self.weights, strict=True):
            moved = at
            if distance > 0.0:
                sizes = np.where(np.isfinite(at.at), np.abs(at.at) + 2.0 * distance, 0.0)
                moved = UncertainEdges(
                    at.at - side * distance, at.error + ULP * sizes, at.width, at.width_error
                )
            found = log_mixture(found, 1.0, log_masses(moved), float(weight))
        return found

    def outputs(self, edges: UncertainEdges) -> UncertainEdges:
        """Return the outputs at which the loss takes the values of edges, with proven errors."""
        target = edges.at
        finite = np.where(np.isfinite(target), target, 0.0)
        at = np.where(finite == 0.0, 0.0, np.copysign(self._solved(np.abs(finite)), finite))
        read = self._read(at)
        # The loss at 0 is exactly 0.
        unsure = np.where(at == 0.0, 0.0, read.error)
        off = 1.01 * (np.abs(read.value - finite) + unsure + edges.error)
        # Either side's slope changes by at most a quarter of the squared range of the distances.
        bend = 0.5 * float(np.ptp(self.distances)) ** 2
        error = off / ((1.0 - _STEADY) * read.slope)
        steady = bend * error <= _STEADY * read.slope
        # Of x and -x one is at least 0, and T' rises.
        error = np.where(steady, error, 1.01 * off / self._rising(np.zeros(1)).slope[0])
        sizes = np.where(np.isfinite(target), np.abs(at), 0.0)
        at = np.where(np.isinf(target), target, at)
        error = np.where(np.isinf(target), 0.0, error + 4.0 * ULP * sizes)
        width = np.diff(at)
        lost = (error[1:] + error[:-1]) / width
        return UncertainEdges(at, error, width, np.where(np.isinf(width), 0.0, lost + ULP))

    def _solved(self, target: Array) -> Array:
        """Return x >= 0 where the loss is near a target >= 0, by Newton's method in a bracket.

        ``T(-x) <= 0 <= x``, so that the loss is at least what each component gives.
        """
        low = np.zeros_like(target)
        moving = self.distances > 0.0
        distance, weight = self.distances[moving, None], self.weights[moving, None]
        high = np.min((target - np.log(weight)) / distance + 0.5 * distance, axis=0)
        at = 0.5 * high
        for _ in range(_STEPS):
            read = self._read(at)
            above = read.value > target
            low, high = np.where(above, low, at), np.where(above, at, high)
            moved = at - (read.value - target) / read.slope
            inside = (moved > low) & (moved < high)
            moved = np.where(inside, moved, 0.5 * (low + high))
            step, at = np.abs(moved - at), moved
            if bool((step <= 4.0 * ULP * (np.abs(at) + 1e-300)).all()):
                break
        return np.asarray(at)

    def _read(self, at: Array) -> _Reading:
        """Return the loss and its slope at some outputs."""
        right, left = self._rising(at), self._rising(-at)
        return _Reading(
            right.value - left.value,
            right.slope + left.slope,
            right.error + left.error + ULP * np.abs(right.value - left.value),
        )

    def _rising(self, at: Array) -> _Reading:
        """Return T and T' at some outputs.

        T is the logarithm of a mean of numbers near 1 where x is small: ``ln1p`` of a sum of
        ``expm1`` loses nothing there.
        """
        distance, weight = self.distances[:, None], self.weights[:, None]
        exponent = distance * (at - 0.5 * distance)
        top = exponent.max(axis=0)
        small = top <= 1.0
        share = weight * np.exp(exponent - top)
        total = share.sum(axis=0)
        slope = (share * distance).sum(axis=0) / total
        rest = (weight * np.expm1(np.minimum(exponent, 1.0))).sum(axis=0)
        value = np.where(small, np.log1p(rest), top + np.log(total))
        sizes = distance * (np.abs(at) + distance) + 2.0
        unsure = (4.0 * sizes * share).sum(axis=0) / total
        # The weights add up to 1 to within half a unit each, which log1p takes for exact.
        unsure = unsure + 8.0 + 4.0 * distance.size + 2.0 * np.abs(top)
        return _Reading(value, slope, ULP * unsure)
