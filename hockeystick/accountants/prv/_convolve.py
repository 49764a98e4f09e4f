"""Sums of many runs of one loss whose atoms are evenly spaced: every value, by convolution.

The tilted masses of n runs are the n-fold convolution of those of one. Nothing is negative in it,
so that round-off is relative: a convolution with m terms adds less than ``m + 2`` units in the last
place to what its factors are off by, and that of n runs is made of n - 1 of them at most. What
comes near underflow, where round-off is no longer relative, is left out and counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from hockeystick.accountants.prv._spectrum import expm1_or_inf
from hockeystick.numerics import ULP
from hockeystick.privacy_loss.bounds.moments import log_cks_factor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hockeystick.kernels.series import Array
    from hockeystick.privacy_loss import CellLoss


# Atoms of less tilted mass than exp(-this) are omitted.
_OMITTED_LOG_MASS: Final = 700.0
# Sums of less tilted mass than this are left out.
_LEAST: Final = 1e-295
# Atoms this close to a lattice, relatively, are taken to be there; the distance is counted.
_ON_LATTICE: Final = 1e-12


def convolved(loss: CellLoss, count: int, tilt: float, *, most: int) -> Combinations | None:
    """Return every sum of a number of atoms of one loss; None where they are many, or uneven."""
    one = tilted_atoms(loss, tilt, _OMITTED_LOG_MASS)
    if one is None or one.loss.size < 2 or count * (one.loss.size - 1) >= most:
        return None
    first, last = float(one.loss[0]), float(one.loss[-1])
    step = (last - first) / (one.loss.size - 1)
    off = float(np.abs(one.loss - (first + step * np.arange(one.loss.size))).max())
    largest = max(abs(first), abs(last))
    if off > _ON_LATTICE * largest:
        return None
    mass = _power(np.exp(one.log_mass), count)
    logs = _OMITTED_LOG_MASS + count * abs(one.log_total) + count * tilt * largest
    return Combinations(
        tilt=tilt,
        loss=count * first + step * np.arange(mass.size, dtype=np.float64),
        mass=mass,
        log_total=count * one.log_total,
        omitted_mass=expm1_or_inf(count * (one.omitted_mass + mass.size * _LEAST)) * (1.0 + 1e-9),
        relative_error=count * (one.error + ULP * (mass.size + 4.0)) + ULP * (16.0 * logs + 64.0),
        displacement=count * (off + 32.0 * ULP * largest),
    )


def _power(mass: Array, count: int) -> Array:
    """Return the convolution of so many times the same masses, by squaring."""
    found = np.ones(1)
    for digit in f"{count:b}":
        found = np.convolve(found, found)
        if digit == "1":
            found = np.convolve(found, mass)
        found[found < _LEAST] = 0.0
    return found


# The largest number of combinations.
_MOST: Final = 2_000_000
# A bound of the sum of all underflows.
_UNDERFLOW: Final = 1e-290
# Atoms of less tilted mass than exp(-this) are omitted, and their mass is bounded.
_ENUMERATE_OMITTED_LOG_MASS: Final = 60.0


@dataclass(frozen=True)
class Combinations:
    """All sums of the losses with their tilted masses, ``exp(log_p + tilt * loss - log_total)``.

    ``relative_error`` bounds the error of the logarithm of each mass, ``displacement`` that of each
    loss, and ``omitted_mass`` the tilted mass of combinations that are omitted.
    """

    tilt: float
    loss: Array
    mass: Array
    log_total: float
    omitted_mass: float
    relative_error: float
    displacement: float

    @property
    def size(self) -> int:
        """The number of combinations."""
        return int(self.loss.size)

    def upper(self, epsilon: float) -> float:
        """Return an upper bound of ln delta."""
        value, missing, scale = self._sum(epsilon - self.displacement)
        return scale + self.relative_error + _log(value + missing)

    def lower(self, epsilon: float) -> float:
        """Return a lower bound of ln delta; -inf for none."""
        value, _, scale = self._sum(epsilon + self.displacement)
        return scale - self.relative_error + _log(value - _UNDERFLOW)

    def _sum(self, epsilon: float) -> tuple[float, float, float]:
        """Return the sum, a bound of the omitted part, and the logarithm of their common factor."""
        x = np.maximum(self.loss - epsilon, 0.0)
        value = float((np.exp(-self.tilt * x) * -np.expm1(-x) * self.mass).sum())
        missing = math.exp(log_cks_factor(self.tilt)) * self.omitted_mass + _UNDERFLOW
        return value, missing, self.log_total - self.tilt * epsilon


class TiltedAtoms(NamedTuple):
    """The tilted atoms of one loss, without negligible ones."""

    loss: Array
    log_mass: Array
    log_total: float
    omitted_mass: float
    error: float


def combinations(
    terms: Sequence[tuple[CellLoss, int]], tilt: float, *, most: int = _MOST
) -> Combinations | None:
    """Return every combination of atoms; None for too many, or losses that are not atomic."""
    kept = [(tilted_atoms(loss, tilt), count) for loss, count in terms]
    if any(one is None for one, _ in kept):
        return None
    known = [(one, count) for one, count in kept if one is not None]
    sizes = [math.comb(n + one.loss.size - 1, n) for one, n in known]
    if math.prod(sizes) > most:
        return None
    loss, log_mass = np.zeros(1), np.zeros(1)
    for one, count in known:
        more_loss, more_mass = _multisets(one, count)
        loss = np.add.outer(loss, more_loss).ravel()
        log_mass = np.add.outer(log_mass, more_mass).ravel()
    runs = math.fsum(n for _, n in known)
    largest = math.fsum(n * float(np.abs(one.loss).max()) for one, n in known)
    logs = float(np.abs(log_mass).max()) + runs * (math.log(runs + 1.0) + 2.0)
    log_total = math.fsum(n * one.log_total for one, n in known)
    rounding = ULP * (16.0 * logs + 4.0 * abs(log_total) + loss.size + 4.0 * tilt * largest)
    return Combinations(
        tilt=tilt,
        loss=loss,
        mass=np.exp(log_mass),
        log_total=log_total,
        omitted_mass=expm1_or_inf(math.fsum(n * one.omitted_mass for one, n in known))
        * (1.0 + 1e-9),
        relative_error=math.fsum(n * one.error for one, n in known) + rounding,
        displacement=ULP * (16.0 + 2.0 * runs) * largest,
    )


def tilted_atoms(
    loss: CellLoss, tilt: float, omitted: float = _ENUMERATE_OMITTED_LOG_MASS
) -> TiltedAtoms | None:
    """Return a loss's tilted atoms without negligible ones; None if it is not atomic."""
    if loss.cells(np.array([-math.inf, math.inf])).log_p[0] > -math.inf:
        return None
    atoms = loss.atoms()
    if not atoms.loss.size:  # all its mass is at infinity
        return None
    exponent = atoms.log_p + tilt * atoms.loss
    top = float(exponent.max())
    log_total = top + math.log(float(np.exp(exponent - top).sum()))
    log_mass = exponent - log_total
    kept = log_mass > -omitted
    sizes = np.abs(atoms.log_p) + np.abs(tilt * atoms.loss) + abs(log_total)
    error = float((atoms.error + ULP * (8.0 * sizes + 16.0))[kept].max())
    omitted_mass = float(np.exp(log_mass[~kept]).sum()) * 1.01
    return TiltedAtoms(atoms.loss[kept], log_mass[kept], log_total, omitted_mass, error)


def _multisets(one: TiltedAtoms, count: int) -> tuple[Array, Array]:
    """Return the sums of ``count`` atoms, one for each multiset, and their masses' logs."""
    from scipy.special import gammaln

    if count == 1:
        return one.loss, one.log_mass
    left = np.array([count], dtype=np.int64)
    loss, log_mass = np.zeros(1), np.full(1, math.lgamma(count + 1.0))
    for value, log_one in zip(one.loss[:-1], one.log_mass[:-1], strict=True):
        times = left + 1
        parent = np.repeat(np.arange(left.size), times)
        taken = np.arange(parent.size) - np.repeat(np.cumsum(times) - times, times)
        loss = loss[parent] + taken * value
        log_mass = log_mass[parent] + taken * log_one - gammaln(taken + 1.0)
        left = left[parent] - taken
    loss = loss + left * one.loss[-1]
    log_mass = log_mass + left * one.log_mass[-1] - gammaln(left + 1.0)
    return loss, log_mass


def _log(value: float) -> float:
    """Return the logarithm, -inf where there is none."""
    return math.log(value) if value > 0.0 else -math.inf
