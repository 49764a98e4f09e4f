"""The loss of Skellam noise: ratios of Bessel functions, in integers as exact as needed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Final, final

import numpy as np

from hockeystick.mechanisms.noise.skellam import Skellam
from hockeystick.numerics import ULP, decimal
from hockeystick.privacy_loss.bounds.sixth_moments import sixth_power
from hockeystick.privacy_loss.bounds.zcdp_line import ZCDPLine, by_orders
from hockeystick.privacy_loss.core.atomic import (
    LOG_LEAST_MASS,
    MOST_ATOMS,
    AtomicLoss,
    both,
    read_only_atoms,
)
from hockeystick.privacy_loss.core.base import Atoms
from hockeystick.privacy_loss.core.registry import DominatingPair, NoAnalysisError, dominating_pair
from hockeystick.privacy_loss.core.two_point import infinity_mass_pair

if TYPE_CHECKING:
    from mpmath import mpf

    from hockeystick.kernels.series import Array

# Bits of a ratio.
_BITS: Final = 128
# Bits after the point of a falling step, so that a float as small as 2^-60 is kept exactly.
_STEP_BITS: Final = 120
_SMALLEST: Final = 1e-300


@final
@dataclass(frozen=True, slots=True)
class SkellamLoss(AtomicLoss):
    """``ln I_k(v)/I_(k+D)(v)`` with the probability ``e^-v I_k(v)``; the same in both directions.

    The ratio ``r_k = I_(k+1)/I_k`` falls in k (the distribution is log-concave), so that the loss
    increases in k; and ``r_(k-1)/r_k <= (k+1)/k``, since by ``1/r_(k-1) = 2k/v + r_k`` that says
    ``k r_(k+1) <= (k+1) r_k``.

    References:
        Agarwal, Kairouz and Liu 2021, section 3.
    """

    variance: float
    sensitivity: int

    @property
    def supremum(self) -> float:
        """Infinite: the loss is unbounded."""
        return math.inf

    def zcdp_line(self) -> ZCDPLine | None:
        """Return the line by orders: the loss is the same in either direction."""
        return by_orders(self)

    @property
    def sixth_moment_upper(self) -> float:
        """That of ``2 D (|k| + 3D) / v``.

        With ``t = 1/sqrt(v)`` at most 1, ``E[k^6] <= 6!/t^6 * 2 exp(v (cosh t - 1))``.
        """
        variance, shift = self.variance, float(self.sensitivity)
        spread = 1440.0 * max(variance, 1.0) ** 3 * math.exp(0.6)
        slope = 2.0 * shift / variance
        return 32.0 * (sixth_power(3.0 * shift * slope) + sixth_power(slope) * spread)

    def atoms(self) -> Atoms:
        """Return the losses, and the probabilities as far as they count."""
        return _atoms(self.variance, self.sensitivity)

    def nodes(self, first: int, count: int) -> tuple[list[mpf], list[mpf]]:
        from hockeystick.precision.skellam import skellam_nodes

        least = -_reach(self.variance) - self.sensitivity
        variance = decimal(self.variance)
        return skellam_nodes(variance, self.sensitivity, least + first, count)

    def log_omitted_moment(self, c: float) -> float:
        """Return ln of the geometric series above the tail of ``p e^(c loss)``, beyond the atoms.

        Neighbouring terms have the ratio ``r_k (r_k / r_(k+D))^c``, which is at most
        ``r_k ((k+D+1)/(k+1))^c`` and falls in k. Below the atoms the losses are negative.
        """
        atoms, last = self.atoms(), _reach(self.variance)
        fall = _steps(self.variance, last + self.sensitivity + 1)[last]
        slack = 1e-12 * (1.0 + c)
        log_ratio = c * math.log1p(self.sensitivity / (last + 1.0)) - fall + slack
        if not log_ratio < 0.0:
            return math.inf
        log_p, grown = float(atoms.log_p[-1]), c * float(atoms.loss[-1])
        above = log_p + grown + log_ratio - math.log(-math.expm1(log_ratio))
        return max(above + 1e-12 * (grown - log_p + 100.0), LOG_LEAST_MASS) + math.log(2.0)

    def cgf_upper(self, c: float) -> float:
        """Return a crude upper bound of K for any c.

        ``1/r_j <= 1 + 2 (j+1)/v``, so that the loss at k is at most ``2 D (|k| + D)/v``; with
        ``E e^(t|k|) <= 2 exp(v (cosh t - 1))`` this gives
        ``K <= ln 2 + 2 c D^2/v + v (cosh(2 c D/v) - 1)``.
        """
        v, shift = self.variance, float(self.sensitivity)
        half = c * shift / v
        if not half < 300.0:
            return math.inf
        value = math.log(2.0) + 2.0 * half * shift + 2.0 * v * math.sinh(half) ** 2
        return value * (1.0 + 64.0 * ULP * (1.0 + half))

    def delta(self, epsilon: mpf, perturbation: int = 0) -> mpf:
        """Return ``T(k0) - e^eps T(k0 + D)``, which falls in the variance: noises add up."""
        from hockeystick.precision.skellam import skellam_delta

        variance = decimal(self.variance) * (1 - perturbation * Fraction(ULP))
        return skellam_delta(epsilon, variance, self.sensitivity)


@lru_cache(maxsize=4)
def _steps(variance: float, count: int) -> list[float]:
    """Return ``-ln r_k`` for ``k < count``, each within 3 ulp.

    ``ln(1 - x)`` of the exactly rounded ``x = 1 - r`` where r is above 1/2, where it moves by at
    most 1.5 times as much as x; the C library's logarithms are within 2 ulp.
    """
    from hockeystick.precision.skellam import bessel_ratios

    values, bits = bessel_ratios(decimal(variance), count, _BITS)
    one = 1 << bits
    return [-math.log1p(-((one - r) / one)) if 2 * r > one else -math.log(r / one) for r in values]


@lru_cache(maxsize=64)
def _reach(variance: float) -> int:
    """Return the k beyond which the noise has less than ``exp(LOG_LEAST_MASS)`` in both tails.

    By Chernoff ``P[y >= k] <= exp(-(k asinh(k/v) - k^2 / (sqrt(k^2 + v^2) + v)))``.
    """
    k = 1.0 + math.floor(math.sqrt(-2.0 * LOG_LEAST_MASS * variance))
    while _log_tail(k, variance) < 2.0 - LOG_LEAST_MASS:
        k += max(1.0, k // 256)
    return int(k) - 1


def _log_tail(k: float, variance: float) -> float:
    """Return Chernoff's exponent."""
    return k * math.asinh(k / variance) - k / (math.hypot(1.0, variance / k) + variance / k)


@lru_cache(maxsize=16)
def _atoms(variance: float, sensitivity: int) -> Atoms:
    """Return the atoms, ascending.

    ``ln p(k)`` is that of 0 minus the steps up to ``|k|``, added up exactly, so that a difference
    of two of these sums is as good as each of its steps, all of one sign.
    """
    last = _reach(variance)
    steps = _steps(variance, last + sensitivity + 1)
    whole = [int(math.ldexp(step, _STEP_BITS)) for step in steps]
    falls = list(accumulate(whole, initial=0))
    k = range(-last - sensitivity, last + 1)
    rises = [falls[abs(j + sensitivity)] - falls[abs(j)] for j in k]
    loss = np.ldexp(np.array(rises, dtype=np.float64), -_STEP_BITS)
    fall = np.ldexp(np.array([falls[abs(j)] for j in k], dtype=np.float64), -_STEP_BITS)
    log_norm, unsure = _log_norm(np.ldexp(np.array(falls, dtype=np.float64), -_STEP_BITS))
    log_p = -fall - log_norm
    return read_only_atoms(loss, log_p, ULP * (4.0 * fall + np.abs(log_p)) + unsure)


def _log_norm(fall: Array) -> tuple[float, float]:
    """Return ``ln(1 + 2 sum exp(-fall))`` over k >= 1, and a bound on its error.

    What is not listed is below ``exp(LOG_LEAST_MASS)`` of all; an error in a fall counts by its
    share.
    """
    terms = np.exp(-fall[1:])
    norm = 1.0 + 2.0 * math.fsum(terms.tolist())
    unsure = 2.0 * math.fsum(((4.0 * fall[1:] + 8.0) * terms).tolist()) / norm
    value = math.log(norm)
    return value, ULP * (unsure + 4.0 + 4.0 * value)


@dominating_pair.register
def _(mechanism: Skellam) -> DominatingPair:
    variance, sensitivity = mechanism.variance, mechanism.sensitivity
    if variance == math.inf:
        return DominatingPair(None, None)
    if variance == 0.0:
        return infinity_mass_pair()
    # 80 standard deviations have all but exp(-800); of a small variance, a few hundred outputs.
    if sensitivity + 80.0 * math.sqrt(variance) > MOST_ATOMS or variance < _SMALLEST:
        raise NoAnalysisError(
            f"Skellam noise is analysed for variances from {_SMALLEST:g} and up to {MOST_ATOMS:,} "
            "outputs: 80 standard deviations and the sensitivity"
        )
    return both(SkellamLoss(variance, sensitivity))
