"""The loss of a release whose losses lie in an interval of known length: bounded range."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np

from hockeystick.numerics import ULP, Ball, FloatAndDecimal, largest_reading
from hockeystick.numerics.rounding import float_up
from hockeystick.numerics.working_precision import working_digits
from hockeystick.privacy_loss.bounds.zcdp_line import ZCDPLine, of_range
from hockeystick.privacy_loss.core.base import Atoms, CGFEstimate, Masses, ProfiledLoss
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.two_point import RandomizedResponsePairLoss
from hockeystick.privacy_loss.core.uncertain_endpoints import no_atoms

if TYPE_CHECKING:
    from mpmath import mpf

    from hockeystick.kernels.series import Array

_TINY: Final = 5e-324
# Decimal digits beyond those that the closed form of K cancels.
_DIGITS: Final = 30


@final
@dataclass(frozen=True, slots=True)
class BoundedRangeLoss(CellLoss, ProfiledLoss):
    """The envelope of all losses that take values in an interval of length e only.

    The worst such releases have two outcomes, of loss t and t - e for a t from 0 to e. At each
    epsilon one of them, ``t = (epsilon + e)/2``, is the worst, and the profile of all together is

        delta(eps) = (exp(e/2) - exp(eps/2))^2 / (exp(e) - 1),   |eps| <= e:

    exact for one run. It is the profile of a pair of its own, whose loss has the density
    ``exp(l/2) / (4 sinh(e/2))`` on (-e, e) and no atoms; that pair dominates every adaptive
    composition (Zhu, Dong and Wang 2022, theorem 10), but none attains it. What several runs
    attained cost is that of ``t = e/2``: randomized response of e/2.

    ``cgf_bounds`` is no moment of the envelope but the largest of any single release, which is
    less. With ``g(x) = ln(sinh(x)/x)`` and ``h = e/2``

        K(c) = max over t of K_t(c) = (c+1) g((c+1) h) - c g(c h) - g(h) <= c (c+1) e^2 / 8,

    attained by ``exp(t) = c (exp(e) - exp(-c e)) / ((c+1) (1 - exp(-c e)))``. Divergences add up
    at each order on its own, so that this bounds adaptive composition too.

    References:
        Dong, Durfee and Rogers 2020, lemma 3.2 (two outcomes); Rogers and Steinke, "A Better
        Privacy Analysis of the Exponential Mechanism", 2021 (e^2/8).
    """

    epsilon: float

    @property
    def supremum(self) -> float:
        """The range e, rounded up over its readings: a larger range only allows more."""
        return float_up(largest_reading(self.epsilon))

    @property
    def exact_supremum(self) -> FloatAndDecimal:
        return FloatAndDecimal.of(self.epsilon)

    @property
    def infimum(self) -> float:
        return -self.supremum

    @property
    def attained(self) -> RandomizedResponsePairLoss | None:
        """Randomized response of half the range: two candidates with opposite scores."""
        half = 0.5 * self.epsilon
        return RandomizedResponsePairLoss(half) if half > 0.0 else None

    def delta(self, epsilon: mpf, perturbation: int = 0) -> mpf:
        """Return ``(1 - exp((eps - e)/2))^2 / (1 - exp(-e))``, for any real epsilon."""
        from hockeystick.numerics.multiprecision import mp
        from hockeystick.precision.profiles import exact

        own = exact(self.epsilon) * (1 + perturbation * mp.mpf(ULP))
        if epsilon >= own:
            return mp.zero
        if epsilon <= -own:
            return -mp.expm1(epsilon)
        return mp.expm1((epsilon - own) / 2) ** 2 / -mp.expm1(-own)

    def atoms(self) -> Atoms:
        """Return none: the envelope has a density."""
        return no_atoms()

    def cells(self, edges: Array) -> Masses:
        """Return ``exp((high - e)/2) (1 - exp(-width/2)) / (1 - exp(-e))``, and under Q."""
        end = self.supremum
        inside = np.clip(edges, -end, end)
        low, high, width = inside[:-1], inside[1:], np.diff(inside)
        whole = math.log(-math.expm1(-end))
        with np.errstate(divide="ignore"):
            log_part = np.log(-np.expm1(-0.5 * width)) - whole
        log_p = 0.5 * (high - end) + log_part
        log_q = -0.5 * (low + end) + log_part
        sizes = np.where(width > 0.0, np.abs(log_part), 0.0) + 2.0 * abs(whole)
        return Masses(log_p, log_q, ULP * (4.0 * end + 4.0 * sizes + 16.0))

    def cgf_estimate(self, c: float) -> CGFEstimate:
        """Return the largest K of any single release, and its two derivatives."""
        value, slope, curvature = _largest(c, self.supremum)
        return CGFEstimate(float(value), float(slope), float(curvature))

    def cgf_bounds(self, c: float) -> Ball:
        """Return the largest K of any single release; not of the envelope, which has more."""
        value = float(_largest(c, self.supremum)[0])
        # K grows at most as the square of e, whose readings differ by half a unit.
        return Ball(value, 8.0 * ULP * value + _TINY)

    def zcdp_line(self) -> ZCDPLine:
        return of_range(self.supremum)


def _largest(c: float, end: float) -> tuple[mpf, mpf, mpf]:
    """Return ``(F(a) - F(b) - F(h)) / h`` for ``F = x g(x)``, ``a = (c+1) h``, ``b = c h``.

    With the derivatives in c, in digits enough for what cancels.
    """
    from hockeystick.numerics.multiprecision import mp

    lost = 3.0 * abs(math.log10(c)) + 3.0 * abs(math.log10(0.5 * end)) if c > 0.0 else 0.0
    with working_digits(_DIGITS + math.ceil(lost)):
        h, order = mp.mpf(end) / 2, mp.mpf(c)
        if c == 0.0:
            return mp.zero, _series(h)[1], mp.inf
        above, below, one = (_series(x) for x in ((order + 1) * h, order * h, h))
        value = (above[0] - below[0] - one[0]) / h
        return value, above[1] - below[1], h * (above[2] - below[2])


def _series(x: mpf) -> tuple[mpf, mpf, mpf]:
    """Return ``F(x) = x ln(sinh(x)/x)`` and two derivatives."""
    from hockeystick.numerics.multiprecision import mp

    small = mp.exp(-2 * x)
    room = -mp.expm1(-2 * x)
    log_ratio = x + mp.log(room / (2 * x))
    coth = (1 + small) / room
    return (
        x * log_ratio,
        log_ratio + x * coth - 1,
        2 * coth - 1 / x - 4 * x * small / (room * room),
    )
