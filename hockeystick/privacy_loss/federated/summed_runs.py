"""The loss of the sum of what several runs of a sampled Gaussian release.

Whoever sees all outputs can add them up, so that the sum never tells more, and a pair that some
data attain in each run gives one that they attain in all: a lower bound by data processing. The
record of n runs at the rate p, noise multiplier z, is drawn k ~ Binomial(n, p) times, and the sum
divided by sqrt(n) is

    sum_k Pr[k] N(k / (z sqrt(n)), 1)    against N(0, 1),

or against its mirror image where the record is replaced. Where the noise is large, the losses of
the runs are all but linear in their outputs and the sum tells nearly as much as they do. Fewer
draws tell less (Kahane's inequality, as in ``sampling/poisson.py``): rare counts are moved down.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from hockeystick.mechanisms.streams.sensitivity import square_root
from hockeystick.numerics import decimal
from hockeystick.privacy_loss.core.base import PrivacyLoss
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.registry import NoAnalysisError
from hockeystick.privacy_loss.noise.gaussian_mixture import mixture_loss
from hockeystick.privacy_loss.sampling.poisson import binomial_counts, moved_counts, opposite_loss
from hockeystick.privacy_loss.sampling.replaced_gaussian import ReplacedGaussianLoss
from hockeystick.privacy_loss.sampling.sampled_gaussian import SampledGaussianLoss

# More runs are not added up: what is left out tells more, but takes longer.
_MOST_RUNS: Final = 1000
# Counts rarer than this are moved down: each count takes its time.
_RAREST: Final = Fraction(1, 10**12)


def summed_runs(loss: PrivacyLoss, count: int) -> CellLoss | None:
    """Return the loss of the sum of the outputs of that many runs; None where it is not known."""
    if not isinstance(loss, SampledGaussianLoss | ReplacedGaussianLoss) or count < 2:
        return None
    runs = min(count, _MOST_RUNS)
    # The root is rounded up: more noise tells less.
    noise = square_root(runs * decimal(loss.noise_multiplier) ** 2)
    draws = moved_counts(binomial_counts(decimal(loss.rate), runs), up=False, rarest=_RAREST)
    try:
        if isinstance(loss, SampledGaussianLoss):
            found = mixture_loss(noise, draws, loss.removing)
        else:
            found = opposite_loss(noise, draws)
    except NoAnalysisError:
        return None
    return found if isinstance(found, CellLoss) else None
