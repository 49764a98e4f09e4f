"""The loss of discrete Laplace noise: one atom for each step of the query's sensitivity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final, final

import numpy as np

from hockeystick.mechanisms.noise.discrete_laplace import DiscreteLaplace
from hockeystick.numerics import ULP, FloatAndDecimal, decimal
from hockeystick.numerics.rounding import as_mpf
from hockeystick.numerics.working_precision import working_digits
from hockeystick.privacy_loss.bounds.zcdp_line import ZCDPLine, outward
from hockeystick.privacy_loss.core.atomic import MOST_ATOMS, AtomicLoss, both, read_only_atoms
from hockeystick.privacy_loss.core.base import Atoms
from hockeystick.privacy_loss.core.registry import DominatingPair, NoAnalysisError, dominating_pair
from hockeystick.privacy_loss.core.two_point import RandomizedResponsePairLoss, infinity_mass_pair

if TYPE_CHECKING:
    from mpmath import mpf

_LARGEST: Final = 1e300
_DIGITS: Final = 40


@final
@dataclass(frozen=True, slots=True)
class DiscreteLaplaceLoss(AtomicLoss):
    """``(2j - D) / b`` for j = 0..D, with ``t^(D-j)`` times ``(1-t)/(1+t)``, at the ends 1/(1+t).

    ``t = e^(-1/b)``; beyond the two centres, at distance D, the loss does not depend on the output.
    The same in both directions.

    The least rho is ``D_1``: on ``sqrt(P Q)`` all losses have the same mass, but those at the ends
    ``1/(1-t)`` times as much, so that M is, but for a factor, at ``s = i b y``

        2 t cos(D y) + (1-t) sin((D+1) y)/sin(y) = (1+t) cos(D y) + (1-t) cot(y) sin(D y).

    That has the sign ``(-1)^k`` at ``y = pi k / D`` for k = 0..D, and so D zeros in (0, pi), which
    are all that a polynomial of degree D in ``e^(2 i y)`` has: all zeros of M are imaginary (see
    ``bounds.zcdp_line``). As ``E|y - D| - E|y| = D - 2 t (1 - t^D) / (1 - t^2)``,
    ``D_1`` is this over b.

    References:
        Ghosh, Roughgarden and Sundararajan 2009, section 2 (the mechanism).
    """

    scale: float
    sensitivity: int

    @property
    def supremum(self) -> float:
        largest = self.sensitivity / decimal(self.scale)
        return math.nextafter(float(largest), math.inf)

    @property
    def exact_supremum(self) -> FloatAndDecimal:
        return FloatAndDecimal.over(self.sensitivity, self.scale)

    @property
    def opposite(self) -> DiscreteLaplaceLoss:
        return self

    def atoms(self) -> Atoms:
        return _atoms(self.scale, self.sensitivity)

    def nodes(self, first: int, count: int) -> tuple[list[mpf], list[mpf]]:
        from hockeystick.precision.integer_noise import discrete_laplace_nodes

        scale = decimal(self.scale)
        return discrete_laplace_nodes(scale, self.sensitivity, first, count)

    def zcdp_line(self) -> ZCDPLine:
        return ZCDPLine(_divergence(self.scale, self.sensitivity))

    def delta(self, epsilon: mpf, perturbation: int = 0) -> mpf:
        from hockeystick.precision.integer_noise import discrete_laplace_delta

        scale = decimal(self.scale) * (1 - perturbation * Fraction(ULP))
        return discrete_laplace_delta(epsilon, scale, self.sensitivity)


@lru_cache(maxsize=256)
def _divergence(scale: float, sensitivity: int) -> float:
    """Return ``D_1``, rounded up."""
    from hockeystick.numerics.multiprecision import mp

    slope = 1 / decimal(scale)
    # What cancels is of the size of D next to D^2/b.
    lost = max(0, math.ceil(-math.log10(slope))) if slope < 1 else 0
    with working_digits(_DIGITS + lost):
        h = as_mpf(slope)
        fallen = 2 * mp.exp(-h) * mp.expm1(-sensitivity * h) / mp.expm1(-2 * h)
        return outward(float(h * (sensitivity - fallen)))


@lru_cache(maxsize=16)
def _atoms(scale: float, sensitivity: int) -> Atoms:
    """Return the atoms, ascending."""
    slope = float(1 / decimal(scale))
    small = math.exp(-slope)
    step = np.arange(sensitivity + 1, dtype=np.float64)
    loss = slope * (2.0 * step - sensitivity)
    fallen = slope * (sensitivity - step)
    inner = math.log(math.tanh(0.5 * slope)) if slope < 1.0 else math.log1p(-small)
    if slope >= 1.0:
        inner -= math.log1p(small)
    ends = -math.log1p(small)
    level = np.full(sensitivity + 1, inner)
    level[0] = level[-1] = ends
    log_p = level - fallen
    return read_only_atoms(loss, log_p, ULP * (4.0 * np.abs(log_p) + 4.0 * fallen + 16.0))


@dominating_pair.register
def _(mechanism: DiscreteLaplace) -> DominatingPair:
    scale, sensitivity = mechanism.scale, mechanism.sensitivity
    if scale == math.inf:
        return DominatingPair(None, None)
    if scale == 0.0:
        return infinity_mass_pair()
    if sensitivity + 1 > MOST_ATOMS or sensitivity / decimal(scale) > _LARGEST:
        raise NoAnalysisError(
            f"discrete Laplace noise is analysed for sensitivities below {MOST_ATOMS:,} and losses "
            f"below {_LARGEST:g}; PureDP(sensitivity / scale) bounds it"
        )
    # A randomized response means the decimal that its epsilon prints as.
    epsilon = 1 / decimal(scale)
    if sensitivity == 1 and decimal(float(epsilon)) == epsilon:
        return both(RandomizedResponsePairLoss(float(epsilon)))
    return both(DiscreteLaplaceLoss(scale, sensitivity))
