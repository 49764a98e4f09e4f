"""Runs that earlier outcomes choose, as one loss that composes with others.

Let ``(T H)(x)`` be the largest mean, over the choices for one run, of ``H(x e^-L)``. Where several
runs and others of fixed pairs take turns in any order, the profile of all is at most that of the
sum of two independent losses: one with the profile ``T^n H_0``, ``H_0(x) = (1 - x)_+``, and that of
the others. For a mean of shifts, ``P H(x) = E H(x e^-M)``, commutes with means of shifts, and
``T P H <= P T H``, as a largest mean of sums is at most the sum of the largest means.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, final

import numpy as np

from hockeystick.privacy_loss.core.atomic import AtomListLoss, kept
from hockeystick.privacy_loss.core.base import Array, Atoms, PrivacyLoss
from hockeystick.privacy_loss.core.symmetrized import adaptive_upper
from hockeystick.privacy_loss.guarantees import BoundedRangeLoss
from hockeystick.privacy_loss.sampling.sampled import SampledLoss
from hockeystick.privacy_loss.selection.exponential import RangeProfile

# Of each mass, more than what rounding took off it; of a step, by how much its point may be off.
_ROUNDING: Final = 2.0**-50
_OFF: Final = 2.0**-20


@final
@dataclass(frozen=True, eq=False)
class AdaptiveLoss(AtomListLoss):
    """The loss whose profile is ``upper`` at ``e^(j step)``, ``|j| <= m``, and chords between.

    Before these points the chord from 1, behind them that to 0 at the largest loss.
    """

    step: float
    upper: Array
    largest: float

    @kept(64)
    def atoms(self) -> Atoms:
        """Return the places where chords meet, with the change of slope there as Q's mass."""
        at = self.step * np.arange(-(self.upper.size // 2), self.upper.size // 2 + 1.0)
        inside = at < self.largest
        at = np.append(at[inside], self.largest)
        x, values = np.exp(at), np.append(self.upper[inside], 0.0)
        falls = np.append(-np.diff(values, prepend=1.0) / np.diff(x, prepend=0.0), 0.0)
        rounding = _ROUNDING * (np.abs(falls[1:]) + np.abs(falls[:-1]))
        masses = (np.maximum(-np.diff(falls), 0.0) + rounding) * x
        known = masses > 0.0
        error = np.full(int(known.sum()), 4.0 * _ROUNDING)
        return Atoms(at[known] + _OFF * self.step, np.log(masses[known]), error)


@lru_cache(maxsize=64)
def adaptive_loss(loss: PrivacyLoss, runs: int) -> AdaptiveLoss | None:
    """Return a loss that dominates so many runs beside others; None where no better one is known.

    Others may be chosen by what these release, and these by what others do.
    """
    inner = loss.inner if isinstance(loss, SampledLoss) else loss
    if runs == 1:
        return None
    if isinstance(inner, BoundedRangeLoss):
        rate, removing = (loss.rate, loss.removing) if isinstance(loss, SampledLoss) else (1, True)
        found = RangeProfile.of(inner.epsilon, runs, float(rate), removing)
        ends = None if found is None else (found.step, found.upper)
    else:
        ends = adaptive_upper(loss, runs)
    largest = runs * loss.supremum * (1.0 + 2.0**-50)
    if ends is None or not largest < math.inf:
        return None
    step, upper = ends
    return AdaptiveLoss(step, np.minimum(upper * (1.0 + 2.0**-40) + 1e-290, 1.0), largest)
