"""Runs that earlier outcomes choose, as one loss that composes with others.

Let ``(T H)(x)`` be the largest mean, over the choices for one run, of ``H(x e^-L)``. Where several
runs and others of fixed pairs take turns in any order, the profile of all is at most that of the
sum of two independent losses: one with the profile ``T^n H_0``, ``H_0(x) = (1 - x)_+``, and that of
the others. For a mean of shifts, ``P H(x) = E H(x e^-M)``, commutes with means of shifts, and
``T P H <= P T H``, as a largest mean of sums is at most the sum of the largest means.
"""

from __future__ import annotations

import math
from functools import lru_cache

from hockeystick.privacy_loss.core.base import PrivacyLoss
from hockeystick.privacy_loss.core.symmetrized import AdaptiveLoss, adaptive_upper
from hockeystick.privacy_loss.guarantees import BoundedRangeLoss
from hockeystick.privacy_loss.sampling.sampled import SampledLoss
from hockeystick.privacy_loss.selection.exponential import RangeProfile


@lru_cache(maxsize=64)
def adaptive_loss(loss: PrivacyLoss, runs: int) -> AdaptiveLoss | None:
    """Return a loss that dominates so many runs beside others; None where no better one is known.

    Others may be chosen by what these release, and these by what others do.
    """
    inner = loss.inner if isinstance(loss, SampledLoss) else loss
    if runs == 1:
        return None
    if not isinstance(inner, BoundedRangeLoss):
        known = adaptive_upper(loss, runs) if loss.supremum < math.inf else None
        return None if known is None or known.is_above(loss, runs) else known
    rate, removing = (loss.rate, loss.removing) if isinstance(loss, SampledLoss) else (1, True)
    found = RangeProfile.of(inner.epsilon, runs, float(rate), removing)
    if found is None:
        return None
    return AdaptiveLoss.of(found.step, found.upper, runs * loss.supremum)
