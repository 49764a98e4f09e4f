"""Composition on a lattice: tilted masses, multiplied in Fourier space, with every error bounded.

With masses tilted by c and normalised, ``delta(eps)`` of the composition is

    exp(K - c eps) sum_j w_j g(l_j - eps),    g(x) = exp(-c x) (1 - exp(-x)) for x > 0,

with ``K = sum n_i ln(total_i)``. The round-off of the transforms, and the mass outside the window,
which wraps around into it, are absolute errors of w: relative ones of delta's Chernoff bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from hockeystick.accountants.prv._discretise import LatticePoints, LossOnLattice, TiltedMasses
from hockeystick.accountants.prv._spectrum import ComposedMasses, composed_masses, expm1_or_inf
from hockeystick.accountants.prv._tail_and_bulk import (
    Bulk,
    absolute_error_of_large,
    mass_of_large,
    masses_with_large_loss,
    split_masses_of,
)
from hockeystick.accountants.prv._window import window
from hockeystick.numerics import ULP
from hockeystick.privacy_loss.bounds.cks_factor import log_cks_factor

if TYPE_CHECKING:
    from hockeystick.privacy_loss import CellLoss

Discretization: TypeAlias = "Callable[[LossOnLattice, float], TiltedMasses]"

# A lattice takes no more points than this, which keeps memory below 500 MB.
MOST_POINTS: Final = 2**22
# The memory that a point of one loss takes, over that of a point of the sum.
_COST_OF_A_LOSS_POINT: Final = 6.0


@dataclass(frozen=True)
class Part:
    """A loss, its number of runs, and its lattice."""

    loss: CellLoss
    count: int
    lattice: LatticePoints


@dataclass(frozen=True)
class Lattice:
    """A composition on a lattice: tilted masses from the point ``start`` on.

    The errors are those of ``TiltedMasses``, added up: ``relative_error`` of the factors,
    ``mass_error`` the tilted mass that is outside the window or uncertain, ``infinity_mass`` and
    ``displacement``. The widest loss alone takes ``widest`` points. With ``bulk`` the masses are
    those of outcomes with a large loss only.
    """

    tilt: float
    step: float
    start: float
    masses: ComposedMasses
    log_total: float
    mass_error: float
    relative_error: float
    infinity_mass: float
    displacement: float
    widest: int
    bulk: Bulk | None = None

    @property
    def share_of_memory(self) -> float:
        """The share of the memory allowed for lattices that this one took."""
        size = self.masses.size
        return max(size, 0.5 * (size + _COST_OF_A_LOSS_POINT * self.widest)) / MOST_POINTS

    def upper(self, epsilon: float) -> float:
        """Return an upper bound of ``ln delta``, of a composition of dominating masses."""
        value, error, scale = self._sum(epsilon - self.displacement)
        log_value = scale + self.relative_error + _log(max(value, 0.0) + error)
        if not log_value < math.inf:
            return math.inf
        log_value = float(np.logaddexp(log_value, _log(self.infinity_mass)))
        if self.bulk is not None:
            rest = self.bulk.upper(epsilon - self.displacement, log_value)
            log_value = float(np.logaddexp(log_value, rest))
        return log_value + 16.0 * ULP

    def lower(self, epsilon: float) -> float:
        """Return a lower bound of ``ln delta``, of a composition of dominated masses."""
        value, error, scale = self._sum(epsilon + self.displacement)
        bound = scale - self.relative_error + _log(value - error) - 8.0 * ULP
        bound = -math.inf if math.isnan(bound) else bound
        if self.bulk is not None:
            bound = float(np.logaddexp(bound, self.bulk.lower(epsilon + self.displacement, bound)))
        return bound - 8.0 * ULP

    def _sum(self, epsilon: float) -> tuple[float, float, float]:
        """Return the sum, a bound of its error, and the logarithm of their common factor."""
        c, count = self.tilt, self.masses.size
        first = min(max(math.ceil((epsilon - self.start) / self.step), 0), count)
        x = max(self.start + self.step * first - epsilon, 0.0)
        value, error = self.masses.sum_from(first, x, c, self.step)
        error += math.exp(log_cks_factor(c)) * self.mass_error
        scale = self.log_total - c * epsilon
        place = abs(self.start) + self.step * count
        rounding = 4.0 * ULP * (abs(self.log_total) + abs(c * epsilon) + c * place)
        return value, error * (1.0 + 1e-12) + rounding * abs(value), scale


def compose(
    parts: Sequence[Part],
    tilt: float,
    log_outside: float,
    discretizations: Sequence[Discretization],
    threshold: float | None = None,
) -> list[Lattice] | None:
    """Return the composition of the parts for each discretisation, dominating or dominated.

    With a threshold, losses above it are split off as rare. None where a lattice takes more than
    ``MOST_POINTS``.
    """
    if any(part.lattice.last - part.lattice.first > MOST_POINTS for part in parts):
        return None
    rows = [
        [discretize(grid, tilt) for discretize in discretizations]
        for grid in (LossOnLattice(p.loss, p.lattice) for p in parts)
    ]
    counts, step = [part.count for part in parts], parts[0].lattice.step
    columns = [list(zip(column, counts, strict=True)) for column in zip(*rows, strict=True)]
    found = [_composed(column, step, tilt, log_outside, threshold) for column in columns]
    lattices = [one for one in found if one is not None]
    return lattices if len(lattices) == len(found) else None


def _composed(
    weights: Sequence[tuple[TiltedMasses, int]],
    step: float,
    tilt: float,
    log_outside: float,
    threshold: float | None,
) -> Lattice | None:
    """Return the composition of losses on lattices of the same step, None if it is too wide."""
    from scipy.fft import next_fast_len

    split_masses = None if threshold is None else split_masses_of(weights, step, threshold)
    log_all = log_outside
    if split_masses is not None:
        large = mass_of_large(split_masses)
        if not large or not all(bool(one.small.weight.any()) for one in split_masses):
            return None
        log_outside += min(math.log(large), 0.0)
    low, high, outside = window(weights, step, log_outside)
    if not high - low < MOST_POINTS * step:
        return None
    offset = math.fsum(count * one.offset for one, count in weights)
    first = math.floor((low - offset) / step) - 1
    size = int(next_fast_len(max(int((high - low) / step) + 4, 16), real=True))
    place = abs(offset) + abs(first * step) + size * step
    rotation = first % size

    def without_large(small: Sequence[tuple[TiltedMasses, int]], order: float) -> Lattice | None:
        return _composed(small, step, order, log_all, None)

    if split_masses is None:
        masses: ComposedMasses = composed_masses(weights, size, rotation)
        mass_error = 1.01 * expm1_or_inf(
            math.fsum(count * one.absolute_error for one, count in weights)
        )
    else:
        masses, mass_error = (
            masses_with_large_loss(split_masses, size, rotation),
            absolute_error_of_large(split_masses),
        )
    return Lattice(
        tilt=tilt,
        step=step,
        start=offset + first * step,
        masses=masses,
        log_total=math.fsum(count * one.log_total for one, count in weights),
        mass_error=outside + mass_error,
        relative_error=math.fsum(count * one.relative_error for one, count in weights)
        * (1.0 + 1e-9),
        infinity_mass=min(
            math.fsum(count * one.infinity_mass for one, count in weights) * (1.0 + 1e-9), 1.0
        ),
        displacement=math.fsum(count * one.displacement for one, count in weights)
        + 8.0 * ULP * place,
        widest=max(one.weight.size for one, _ in weights),
        bulk=None if split_masses is None else Bulk(split_masses, step, tilt, without_large),
    )


def _log(value: float) -> float:
    """Return the logarithm, -inf where there is none."""
    return -math.inf if value <= 0.0 else math.log(value)
