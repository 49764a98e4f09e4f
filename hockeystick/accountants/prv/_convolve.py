"""Sums of many runs of one loss whose atoms are evenly spaced: every value, by convolution.

The tilted masses of n runs are the n-fold convolution of those of one. Nothing is negative in it,
so that round-off is relative: a convolution with m terms adds less than ``m + 2`` units in the last
place to what its factors are off by, and that of n runs is made of n - 1 of them at most. What
comes near underflow, where round-off is no longer relative, is left out and counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from hockeystick.accountants.prv._enumerate import Combinations, tilted_atoms
from hockeystick.accountants.prv._spectrum import expm1_or_inf
from hockeystick.numerics import ULP

if TYPE_CHECKING:
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
