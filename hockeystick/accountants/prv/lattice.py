"""Composition on a lattice: tilted masses, multiplied in Fourier space, with every error bounded.

With masses tilted by c and made to add up to 1, ``delta(eps)`` of the composition is

    exp(K - c eps) sum_j w_j g(l_j - eps),    g(x) = exp(-c x) (1 - exp(-x)) for x > 0,

with ``K = sum n_i ln(total_i)``. What the transforms round off, and what lies outside the window
and is folded into it, is an absolute error in w: a relative one of delta's Chernoff bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from hockeystick.accountants.prv._discretise import LatticeGrid, Steps, Weights
from hockeystick.accountants.prv._spectrum import Masses, grown_by, masses_of
from hockeystick.accountants.prv._tail_and_bulk import (
    Bulk,
    mass_of_large,
    off_by,
    rare_masses,
    split_masses_of,
)
from hockeystick.accountants.prv._window import window
from hockeystick.numerics import ULP
from hockeystick.privacy_loss.bounds.cks_factor import log_cks_factor

if TYPE_CHECKING:
    from hockeystick.privacy_loss import CellLoss

Put: TypeAlias = "Callable[[LatticeGrid, float], Weights]"

# A lattice takes no more points than this, which keeps memory below 500 MB.
MOST_POINTS: Final = 2**22
# A point of one loss takes so many times the memory that a point of the sum takes.
_DEARER: Final = 6.0


@dataclass(frozen=True)
class Part:
    """A loss on its lattice, and how often it runs."""

    loss: CellLoss
    count: int
    steps: Steps


@dataclass(frozen=True)
class Lattice:
    """A composition on a lattice: tilted masses from the point ``start`` on.

    ``folded`` bounds the tilted mass that lies outside the window or is wrong, ``error`` the error
    of the factors, relative; ``lost`` the probability of an infinite loss; ``slack`` how far each
    point is from where its mass belongs. The widest loss alone takes ``widest`` points. With
    ``bulk`` the masses are those of outcomes with a large loss only.
    """

    tilt: float
    step: float
    start: float
    masses: Masses
    log_total: float
    folded: float
    error: float
    lost: float
    slack: float
    widest: int
    bulk: Bulk | None = None

    @property
    def share_of_memory(self) -> float:
        """How much of the memory that there is for lattices this one took."""
        size = self.masses.size
        return max(size, 0.5 * (size + _DEARER * self.widest)) / MOST_POINTS

    def upper(self, epsilon: float) -> float:
        """Return an upper bound of ``ln delta`` of what dominates the composition."""
        value, spread, scale = self._sum(epsilon - self.slack)
        log_value = scale + self.error + _log(max(value, 0.0) + spread)
        if not log_value < math.inf:
            return math.inf
        log_value = float(np.logaddexp(log_value, _log(self.lost)))
        if self.bulk is not None:
            rest = self.bulk.upper(epsilon - self.slack, log_value)
            log_value = float(np.logaddexp(log_value, rest))
        return log_value + 16.0 * ULP

    def lower(self, epsilon: float) -> float:
        """Return a lower bound of ``ln delta`` of what the composition dominates."""
        value, spread, scale = self._sum(epsilon + self.slack)
        bound = scale - self.error + _log(value - spread) - 8.0 * ULP
        bound = -math.inf if math.isnan(bound) else bound
        if self.bulk is not None:
            bound = float(np.logaddexp(bound, self.bulk.lower(epsilon + self.slack, bound)))
        return bound - 8.0 * ULP

    def _sum(self, epsilon: float) -> tuple[float, float, float]:
        """Return the sum, a bound of its error, and the logarithm of what both are scaled by."""
        c, count = self.tilt, self.masses.size
        first = min(max(math.ceil((epsilon - self.start) / self.step), 0), count)
        x = max(self.start + self.step * first - epsilon, 0.0)
        value, error = self.masses.beyond(first, x, c, self.step)
        spread = error + math.exp(log_cks_factor(c)) * self.folded
        scale = self.log_total - c * epsilon
        place = abs(self.start) + self.step * count
        slack = 4.0 * ULP * (abs(self.log_total) + abs(c * epsilon) + c * place)
        return value, spread * (1.0 + 1e-12) + slack * abs(value), scale


def compose(
    parts: Sequence[Part],
    tilt: float,
    log_outside: float,
    puts: Sequence[Put],
    threshold: float | None = None,
) -> list[Lattice] | None:
    """Return the compositions of the parts, each put on its lattice by ``above`` or ``below``.

    With a threshold, losses above it are split off as rare. None where a lattice takes more than
    ``MOST_POINTS``.
    """
    if any(part.steps.last - part.steps.first > MOST_POINTS for part in parts):
        return None
    rows = [
        [put(grid, tilt) for put in puts] for grid in (LatticeGrid(p.loss, p.steps) for p in parts)
    ]
    counts, step = [part.count for part in parts], parts[0].steps.step
    columns = [list(zip(column, counts, strict=True)) for column in zip(*rows, strict=True)]
    found = [_composed(column, step, tilt, log_outside, threshold) for column in columns]
    lattices = [one for one in found if one is not None]
    return lattices if len(lattices) == len(found) else None


def _composed(
    weights: Sequence[tuple[Weights, int]],
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
    lead = first % size

    def without_large(small: Sequence[tuple[Weights, int]], order: float) -> Lattice | None:
        return _composed(small, step, order, log_all, None)

    if split_masses is None:
        masses: Masses = masses_of(weights, size, lead)
        off = 1.01 * grown_by(math.fsum(count * one.loose for one, count in weights))
    else:
        masses, off = rare_masses(split_masses, size, lead), off_by(split_masses)
    return Lattice(
        tilt=tilt,
        step=step,
        start=offset + first * step,
        masses=masses,
        log_total=math.fsum(count * one.log_total for one, count in weights),
        folded=outside + off,
        error=math.fsum(count * one.error for one, count in weights) * (1.0 + 1e-9),
        lost=min(math.fsum(count * one.lost for one, count in weights) * (1.0 + 1e-9), 1.0),
        slack=math.fsum(count * one.slack for one, count in weights) + 8.0 * ULP * place,
        widest=max(one.weight.size for one, _ in weights),
        bulk=None if split_masses is None else Bulk(split_masses, step, tilt, without_large),
    )


def _log(value: float) -> float:
    """Return the logarithm, -inf where there is none."""
    return -math.inf if value <= 0.0 else math.log(value)
