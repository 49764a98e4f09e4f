"""The loss of the best of a Poisson number of runs.

In the terms of ``tuning``, with ``v = (1+c) q - c q'`` it is ``h = m e^(m (v-1))``, and
``v-1 = c (1-q') - (1+c) (1-q)`` is at most c times the delta of the other direction at
``epsilon = ln(1 + 1/c)``: so h is at most ``C = m e^(c m delta)``, which with W is theorem 6 of
Papernot and Steinke 2022. The factor's lemma sharpens it. The theorem as printed, without f(0),
promises negative divergences where m < 1; this bound never does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from hockeystick.mechanisms.selection.tuning import Poisson, RunCount
from hockeystick.numerics import ULP
from hockeystick.privacy_loss.core.composition import Terms, largest_loss
from hockeystick.privacy_loss.selection.run_profile import profile_upper
from hockeystick.privacy_loss.selection.tuning_loss import FactorLoss, sum_up


@final
@dataclass(frozen=True, slots=True)
class PoissonTuningLoss(FactorLoss):
    """``K(c) <= ln(1 + m e^(c m delta(c)) (e^(K_run(c)) - 1))``, delta of the other direction.

    No loss exceeds the largest one of a run plus m times the total variation.
    """

    terms: Terms
    reverse: Terms
    mean: float

    @property
    def count(self) -> RunCount:
        return Poisson(self.mean)

    def largest(self, terms: Terms, reverse: Terms) -> float:
        """Return the largest loss in the direction of ``terms``, rounded up."""
        return sum_up(largest_loss(terms), self.mean * profile_upper(reverse, 0.0))

    def log_factor(self, c: float) -> float:
        """Return an upper bound of ``ln C = ln m + c m delta(c)``: theorem 6 adds it to K."""
        epsilon = math.log1p(1.0 / c) * (1.0 - 8.0 * ULP)
        log_mean = math.log(self.mean)
        growth = c * self.mean * profile_upper(self.reverse, epsilon)
        return log_mean + growth + 8.0 * ULP * (1.0 + abs(log_mean) + growth)
