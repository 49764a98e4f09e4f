"""Moments of a loss from its atoms and cells: for expansions about the normal, and enclosures.

The cells grow with their distance from 0, so that the loss is known to better than a thousandth
of itself in each of them; below a ten-thousandth of its deviation it need not be.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from hockeystick.numerics import ULP
from hockeystick.privacy_loss.bounds.cumulants import Cumulants, Half, of_halves
from hockeystick.privacy_loss.bounds.moment_bounds import (
    Beyond,
    Cells,
    MomentBounds,
    Range,
    of_cells,
)
from hockeystick.privacy_loss.bounds.sixth_moments import beyond
from hockeystick.privacy_loss.core.base import KnownDistribution
from hockeystick.privacy_loss.core.interval_masses import Cells as LossCells
from hockeystick.privacy_loss.core.interval_masses import Ends, cells_of, points_of

if TYPE_CHECKING:
    from hockeystick.kernels.series import Array

# Cells on either side, where they begin in deviations, and in largest losses at the least.
_GROWING: Final = 2**15
_BEGIN: Final = 1e-4
_LEAST: Final = 2.0**-60
# Where a mass is known no better than this, no moments are.
_SURE: Final = 0.1
# Atoms that are not listed have no more than exp of this.
_MISSING: Final = -800.0


def cumulants(loss: KnownDistribution) -> Cumulants:
    """Return the cumulants, with some 6 digits."""
    return of_halves(*halves_of(loss))


def halves_of(loss: KnownDistribution) -> tuple[Half, Half, float]:
    """Return the positive losses, the negative ones and the mass at 0, each cell merged."""
    cells, _ = _cells(loss)
    atoms = loss.atoms()
    kept = cells.chosen((cells.log_p > -math.inf) & (cells.log_q > -math.inf))
    mean = np.clip(kept.log_p - kept.log_q, kept.low, kept.high)
    place = np.concatenate((atoms.loss, mean))
    log_p = np.concatenate((atoms.log_p, kept.log_p))
    log_q = np.concatenate((atoms.log_p - atoms.loss, kept.log_q))
    with np.errstate(under="ignore"):
        p, q = np.exp(log_p), np.exp(log_q)
    above, below = place > 0.0, place < 0.0
    return (
        Half(place[above], p[above], q[above]),
        Half(-place[below], p[below], q[below]),
        float(p[place == 0.0].sum()),
    )


def moment_bounds(loss: KnownDistribution, sixth_moment_upper: float) -> MomentBounds | None:
    """Return the enclosures from cells, which each contribute between their ends.

    None where masses or what lies beyond the cells are not known well enough.
    """
    if not sixth_moment_upper < math.inf:
        return None
    cells, ends = _cells(loss)
    if not bool((cells.error < _SURE).all()):
        return None
    atoms = loss.atoms()
    unsure = 4.0 * ULP * abs(atoms.loss)
    zero = atoms.log_p[atoms.loss == 0.0] + atoms.error[atoms.loss == 0.0]
    none = math.fsum(math.exp(one) for one in zero.tolist())
    slack = 2.0 * float(atoms.error[atoms.loss == 0.0].sum()) + 8.0 * ULP
    wide = LossCells(
        cells.low - loss.displacement,
        cells.high + loss.displacement,
        cells.log_p,
        cells.log_q,
        cells.error,
    )
    single = LossCells(
        atoms.loss - unsure,
        atoms.loss + unsure,
        atoms.log_p,
        atoms.log_p - atoms.loss,
        atoms.error + unsure + 2.0 * ULP * (abs(atoms.log_p) + abs(atoms.loss)),
    )
    at_zero = (max(none * (1.0 - slack), 0.0), none) if none > 0.0 else (0.0, 0.0)
    above, below = (_side(wide, single, sign) for sign in (1.0, -1.0))
    return of_cells(above, below, _beyond(ends, sixth_moment_upper, bool(atoms.loss.size)), at_zero)


def _cells(loss: KnownDistribution) -> tuple[LossCells, Ends]:
    """Return cells that begin well below the deviation of the loss."""
    place, log_p = points_of(loss)
    spread = math.sqrt(float((np.exp(log_p) * place * place).sum()))
    farthest = float(np.abs(place).max())
    share = _BEGIN * spread / farthest if farthest > 0.0 else _BEGIN
    return cells_of(loss, _GROWING, min(max(share, _LEAST), _BEGIN))


def _beyond(ends: Ends, sixth: float, atomic: bool) -> Beyond:
    """Return the bound of what lies beyond the cells, under either distribution."""
    logs = (ends.low_p, ends.low_q, ends.high_p, ends.high_q)
    mass = math.fsum(math.exp(one) for one in logs)
    if atomic:
        mass += 2.0 * math.exp(0.5 * _MISSING) ** 2 + 1e-320
    return lambda power, offset: beyond(mass, sixth, power, offset)


def _side(wide: LossCells, single: LossCells, sign: float) -> Cells:
    """Return the cells and the atoms on one side of 0, by their distance from it."""
    inside = wide.low + wide.high > 0.0 if sign > 0.0 else wide.low + wide.high < 0.0
    cells, atoms = wide.chosen(inside), single.chosen(sign * single.low > 0.0)
    low, high, log_p, log_q, error = (
        np.concatenate(pair) for pair in zip(cells, atoms, strict=True)
    )
    sizes = (low, high) if sign > 0.0 else (-high, -low)
    size = Range(np.maximum(sizes[0], 0.0), sizes[1])
    return Cells(size, _masses(log_p, error), _masses(log_q, error))


def _masses(log_mass: Array, error: Array) -> Range:
    """Return the ends of masses."""
    with np.errstate(under="ignore"):
        return Range(np.exp(log_mass - error), np.exp(log_mass + error))
