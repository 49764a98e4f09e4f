"""The privacy profile of one run, which bounds of the best of several rest on."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

from hockeystick.numerics import ULP
from hockeystick.privacy_loss.bounds.cks_factor import log_cks_factor
from hockeystick.privacy_loss.core.base import ClosedFormProfile
from hockeystick.privacy_loss.core.composition import Terms, largest_loss
from hockeystick.privacy_loss.core.terms import cgf_upper, minimising_orders, total
from hockeystick.privacy_loss.guarantees.trade_off import ProfileLoss
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss
from hockeystick.privacy_loss.selection.tuning_loss import evaluated

_OUTWARD: Final = 2.0**-46
# The range of mu^2 in which Gaussians are composed.
_LEAST_SQUARE: Final = 1e-100


@lru_cache(maxsize=4096)
def profile_upper(terms: Terms, epsilon: float) -> float:
    """Return a proven upper bound of the composition's delta at an epsilon >= 0.

    Exact for Gaussians and for single runs with a closed form; elsewhere from the best Renyi
    divergence (Canonne, Kamath and Steinke 2020, proposition 12).
    """
    if largest_loss(terms) <= epsilon:
        return 0.0
    exact = _closed_form(terms)
    if exact is not None:
        return min(evaluated(lambda m: exact(m.mpf(epsilon), 1)), 1.0)

    def condition(c: float) -> float:
        return total(terms, c).first_derivative - epsilon - math.log1p(1.0 / c)

    least = min(_log_delta_upper(terms, epsilon, c) for c in minimising_orders(terms, condition))
    return min(math.exp(min(least, 0.0)) * (1.0 + _OUTWARD), 1.0)


def _log_delta_upper(terms: Terms, epsilon: float, c: float) -> float:
    """Return a proven upper bound of ln delta from the divergence of order 1 + c."""
    mgf = cgf_upper(terms, c)
    if mgf == math.inf:
        return 0.0
    log_factor = log_cks_factor(c)
    return mgf - c * epsilon + log_factor + _OUTWARD * (mgf + c * epsilon + abs(log_factor))


def _closed_form(terms: Terms) -> ClosedFormProfile | None:
    """Return the closed-form profile of one loss that dominates all runs; None if there is none."""
    gaussians = composed_gaussian(terms, -1.0)
    if gaussians is not None and all(isinstance(loss, GaussianLoss) for loss, _ in terms):
        return gaussians.delta
    ((loss, count), *more) = terms
    if more or count > 1 or isinstance(loss, ProfileLoss):
        return None
    return loss.closed_form_profile


def composed_gaussian(terms: Terms, side: float) -> GaussianLoss | None:
    """Return the composition of the Gaussians, its noise rounded up (side 1) or down (-1)."""
    found = [(loss, count) for loss, count in terms if isinstance(loss, GaussianLoss)]
    if len(found) == 1 and found[0][1] == 1:
        return found[0][0]
    square = math.fsum(count * loss.mu * loss.mu for loss, count in found)
    if not _LEAST_SQUARE < square < 1.0 / _LEAST_SQUARE:
        return None
    return GaussianLoss((1.0 + side * 16.0 * ULP) / math.sqrt(square))
