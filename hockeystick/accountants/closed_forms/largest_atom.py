"""The largest loss that a plan attains with a probability of its own: all runs at once.

Where every run may lose the most that it can, and does so together with probability q, the sum of
the largest losses l is an atom of mass q, and ``delta(eps) >= q (1 - e^(eps - l))``.
"""

from __future__ import annotations

import math
import sys
from typing import NamedTuple

from hockeystick.numerics import ULP, log_readings
from hockeystick.privacy_loss import CellLoss, Terms


class LargestAtomBound(NamedTuple):
    """A loss that a direction attains, rounded down, and a lower bound of its ``ln q``."""

    loss: float
    log_mass: float

    def delta(self, epsilon: float) -> float:
        """Return a lower bound of delta."""
        if not epsilon < self.loss:
            return 0.0
        log_delta = self.log_mass + math.log(-math.expm1(epsilon - self.loss))
        return math.exp(log_delta * (1.0 + 8.0 * ULP)) * (1.0 - 8.0 * ULP)

    def epsilon(self, delta: float) -> float:
        """Return a lower bound of epsilon."""
        _, log_delta = log_readings(delta)
        log_ratio = log_delta - self.log_mass
        log_ratio += 4.0 * ULP * (abs(log_delta) + abs(self.log_mass))
        if not log_ratio < 0.0:
            return 0.0
        epsilon = self.loss + math.log(-math.expm1(log_ratio)) * (1.0 + 8.0 * ULP)
        return max(epsilon - 4.0 * ULP * abs(self.loss), 0.0)


def largest_atom_bound(terms: Terms) -> LargestAtomBound:
    """Return the largest loss that those runs attain whose largest one has mass; 0 for none."""
    loss, log_mass = 0.0, 0.0
    for one, count in terms:
        attained = one.attained
        atoms = attained.atoms() if isinstance(attained, CellLoss) else None
        if atoms is None or not atoms.loss.size or not math.isfinite(atoms.loss[-1]):
            continue
        # The error of a mapped loss is part of its atoms' error.
        error = float(atoms.error[-1])
        own, mass = float(atoms.loss[-1]) - error, float(atoms.log_p[-1]) - error
        if own > 0.0 and mass > -math.inf:
            loss = min(loss + count * own, sys.float_info.max)
            log_mass += count * mass
    rounding = 8.0 * ULP * (1.0 + len(terms))
    return LargestAtomBound(loss * (1.0 - rounding), log_mass * (1.0 + rounding) - rounding)
