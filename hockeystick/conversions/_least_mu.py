"""The least mu of one run of a known loss: where its trade-off function needs the most.

- Laplace noise with ``e = 1/b``: ``f(alpha) = exp(-e) / (4 alpha)`` between ``exp(-e)/2`` and 1/2,
  and f is linear outside, to (0, 1) and (1, 0), where ``G_mu``, which is convex, is below it as
  soon as it is at the other end. With ``alpha = Phi(-x)`` and ``f = Phi(-y)`` the least mu is the
  largest ``x + y`` with ``ln Phi(-x) + ln Phi(-y) >= -e - ln 4``. As ``ln Phi`` is concave these
  (x, y) are a convex set, and a symmetric one: it has ``((x + y)/2, (x + y)/2)`` as well. So
  x = y and

      mu = -2 Phi^-1(exp(-e/2) / 2).

- Finitely many losses: f is a polygon, and ``G_mu`` is below it where it is below its vertices, so
  that mu is the largest ``Phi^-1(P[L >= l]) - Phi^-1(Q[L >= l])`` over all losses l.

A smaller mu has ``G_mu > f`` somewhere. On a sample both directions have at most the mu of the run,
as hockey-stick divergences are jointly convex.
"""

from __future__ import annotations

import math
from functools import lru_cache, singledispatch
from typing import TYPE_CHECKING, Final

from hockeystick.conversions.theorems import laplace_mu, liu_mu
from hockeystick.numerics.working_precision import working_digits
from hockeystick.privacy_loss import (
    AtomicLoss,
    CellLoss,
    DiscreteLaplaceLoss,
    LaplaceLoss,
    PrivacyLoss,
    RandomizedResponseLoss,
    RandomizedResponsePairLoss,
)

if TYPE_CHECKING:
    from mpmath import mpf

_DIGITS: Final = 50
# The error of a quantile relative to 1 and its size, which is verified.
_QUANTILE: Final = 1e-30
# Far more than the error of a quantile in floats, relative to its size.
_NEAR: Final = 1e-9
# The most vertices, and the most that are computed in many digits.
_MOST_VERTICES: Final = 2000
_MOST_EXACT: Final = 40
# Covers readings of the parameters.
_OUTWARD: Final = 1.0 + 2.0**-47
# Losses beyond which vertices are not computed.
_LARGEST: Final = 1e6


def is_least(loss: PrivacyLoss) -> bool:
    """Return whether no mu below ``least_mu`` holds of one run."""
    if isinstance(loss, RandomizedResponseLoss | DiscreteLaplaceLoss):
        return _of_vertices(loss) < math.inf
    return isinstance(loss, LaplaceLoss | RandomizedResponsePairLoss)


@singledispatch
def least_mu(loss: PrivacyLoss) -> float:
    """Return a mu with ``G_mu <= f`` for one run in either direction, rounded up; inf for none."""
    if not isinstance(loss, CellLoss):
        return math.inf
    largest = max(loss.supremum, -loss.infimum)
    by_ends = liu_mu(largest) if largest < math.inf else math.inf
    return min(by_ends, least_mu(loss.unsampled)) if loss.unsampled else by_ends


@least_mu.register
def _(loss: LaplaceLoss) -> float:
    return laplace_mu(loss.supremum) if loss.supremum < math.inf else math.inf


@least_mu.register
def _(loss: RandomizedResponseLoss | DiscreteLaplaceLoss) -> float:
    return min(liu_mu(loss.supremum), _of_vertices(loss))


@lru_cache(maxsize=256)
def _of_vertices(loss: AtomicLoss) -> float:
    """Return the largest mu of the vertices, rounded up; inf where they are too many."""
    from hockeystick.numerics.multiprecision import mp

    count = loss.atoms().loss.size
    if count > _MOST_VERTICES or loss.supremum > _LARGEST:
        return math.inf
    with working_digits(_DIGITS):
        losses, own = loss.nodes(0, count)
        other = [mass * mp.exp(-value) for value, mass in zip(losses, own, strict=True)]
        missed, alarms = _sums(own[:-1]), _sums(other[:0:-1])[::-1]
        near = _nearest(missed, alarms)
        if len(near) > _MOST_EXACT:
            return math.inf
        best = max(-_least_quantile(missed[k]) - _least_quantile(alarms[k]) for k in near)
        return float(best) * _OUTWARD


def _sums(masses: list[mpf]) -> list[mpf]:
    """Return the partial sums."""
    total, found = masses[0] * 0, []
    for mass in masses:
        total += mass
        found.append(total)
    return found


def _nearest(missed: list[mpf], alarms: list[mpf]) -> list[int]:
    """Return the vertices that may have the largest mu, by their two error rates."""
    import numpy as np
    from scipy.special import ndtri_exp

    from hockeystick.numerics.multiprecision import mp

    here, there = (
        np.asarray(ndtri_exp(np.array([float(mp.log(rate)) for rate in rates])))
        for rates in (missed, alarms)
    )
    mus = -here - there
    slack = _NEAR * (1.0 + np.abs(here) + np.abs(there))
    return [int(k) for k in np.flatnonzero(mus + slack >= float((mus - slack).max()))]


def _least_quantile(rate: mpf) -> mpf:
    """Return a number at most ``Phi^-1(rate)``, by Newton's steps, and verified."""
    from scipy.special import ndtri_exp

    from hockeystick.numerics.multiprecision import mp

    x = mp.mpf(float(ndtri_exp(float(mp.log(rate)))))
    for _ in range(3):
        x -= (mp.ncdf(x) - rate) / mp.npdf(x)
    slack = mp.mpf(_QUANTILE) * (1 + abs(x))
    while mp.ncdf(x - slack) > rate:
        slack *= 2
    return x - slack
