"""Plans whose epsilon is 0: their total variation distance is at most delta.

delta at epsilon 0 is the total variation distance of the two products. That is at most the sum of
the runs' own distances, by the triangle inequality, and at most ``sqrt(chi^2) / 2``, where
``1 + chi^2 = exp(sum n_i K_i(1))``, by the Cauchy-Schwarz inequality: ``E_Q|P/Q - 1|`` is at most
the square root of ``E_Q(P/Q - 1)^2``. The sum is small where runs are few, the root where they are
many.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from hockeystick.numerics import least_reading
from hockeystick.privacy_loss import AnalyticLoss, Composition, Terms
from hockeystick.privacy_loss.core.terms import cgf_upper

# A bound is worked out where its unproven estimate is at most this multiple of delta.
_HOPEFUL: Final = 1.01
# More different losses than this are not looked at one by one.
_MOST_LOSSES: Final = 8
_OUTWARD: Final = 1.0 + 2.0**-40


def has_no_epsilon(composition: Composition, delta: float) -> bool:
    """Return whether epsilon is proven to be 0 at a delta; False where that is not known."""
    least = float(least_reading(delta)) / _OUTWARD
    return all(_is_below(terms, least) for terms in composition.directions)


def _is_below(terms: Terms, delta: float) -> bool:
    """Return whether a direction's total variation distance is proven to be at most delta."""
    losses = [(loss, n) for loss, n in terms if isinstance(loss, AnalyticLoss)]
    if not len(terms) == len(losses) <= _MOST_LOSSES:
        return False
    if any(loss.out_of_range for loss, _ in losses):
        return False
    hopeful = _HOPEFUL * delta
    square = math.fsum(n * loss.clt_mu_squared for loss, n in losses)
    if 0.5 * math.sqrt(square) <= hopeful:
        exponent = cgf_upper(terms, 1.0)
        if exponent < 1.0 and 0.5 * math.sqrt(math.expm1(exponent)) * _OUTWARD <= delta:
            return True
    if math.fsum(n * loss.delta_estimate(0.0) for loss, n in losses) > hopeful:
        return False
    return math.fsum(n * _upper(loss) for loss, n in losses) * _OUTWARD <= delta


def _upper(loss: AnalyticLoss) -> float:
    """Return an upper bound of one run's total variation distance."""
    profile = loss.proven_profile()
    return float(profile.at(np.zeros(1)).upper[0]) if profile else math.inf
