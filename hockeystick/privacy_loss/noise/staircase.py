"""The loss of staircase noise, which has three values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, final

from hockeystick.mechanisms.noise.staircase import Staircase
from hockeystick.numerics import ULP, FloatAndDecimal
from hockeystick.privacy_loss.core.atomic import FewAtoms, both
from hockeystick.privacy_loss.core.outcomes import PartlyInfiniteLoss
from hockeystick.privacy_loss.core.registry import DominatingPair, dominating_pair
from hockeystick.privacy_loss.core.two_point import RandomizedResponsePairLoss, infinity_mass_pair

if TYPE_CHECKING:
    from mpmath import mpf

    from hockeystick.precision.atoms import AtomList


@final
@dataclass(frozen=True, slots=True)
class StaircaseLoss(FewAtoms):
    """``+-eps`` as e^eps to 1, and 0 where both neighbours' outputs are on one step.

    Let f be the density of the noise X, ``b = e^-eps``, and let the query move by ``0 < d <= 1``.
    The steps end at ``|x| = gamma + j``, so that |x| and |x - d| are on the same step or on
    neighbouring ones: the loss is eps, 0 or -eps. Reflection at d/2 swaps f(x) and f(x - d), so
    that ``P(L = -eps) = Q(L = eps) = b P(L = eps)``, and P(L = eps) alone decides the pair:
    ``delta(e) = P(L = eps) (1 - e^(e - eps))_+`` for e >= 0. The total variation is
    ``(1 - b) P(L = eps)``, and, as f falls with |x|, ``P(|X| <= d/2)``. It grows with d: the pair
    at d = 1 dominates all others, with

        P(L = 0) = (1 - b) (1 - 2 gamma) b / (2 (gamma + b (1 - gamma)))   up to gamma = 1/2,
        P(L = 0) = (1 - b) (2 gamma - 1)   / (2 (gamma + b (1 - gamma)))   above.

    For ``gamma = 1/(1 + e^(eps/2))`` it is ``s (1 - s)^2 / 2`` with ``s = e^(-eps/2)``. A larger
    eps costs more, and so does a gamma nearer to 1/2. The same in both directions.

    References:
        Geng and Viswanath 2014 (the noise; the loss is derived here).
    """

    epsilon: float
    gamma: float | None

    @property
    def opposite(self) -> StaircaseLoss:
        return self

    @property
    def supremum(self) -> float:
        return self.epsilon

    @property
    def exact_supremum(self) -> FloatAndDecimal:
        return FloatAndDecimal.of(self.epsilon)

    def exact_atoms(self, perturbation: int = 0) -> AtomList:
        """Return the atoms by mpmath; gamma is moved towards 1/2 for a larger loss."""
        from hockeystick.numerics.multiprecision import mp
        from hockeystick.precision.atoms import three_points
        from hockeystick.precision.profiles import exact

        # 1 - 2 gamma loses what gamma is near 1/2.
        with mp.extraprec(64):
            epsilon, move = exact(self.epsilon) * (1 + perturbation * ULP), perturbation * ULP
            if self.gamma is None:
                nothing = mp.exp(-epsilon / 2) * mp.expm1(-epsilon / 2) ** 2 / 2
            elif self.gamma < 0.5:
                nothing = _on_one_step(epsilon, min(exact(self.gamma) * (1 + move), mp.mpf(0.5)))
            else:
                moved = exact(self.gamma) * (1 - move)
                nothing = _on_one_step(epsilon, min(max(moved, mp.mpf(0.5)), mp.one))
        return three_points(epsilon, nothing)


def _on_one_step(epsilon: mpf, gamma: mpf) -> mpf:
    """Return the probability that the loss is 0."""
    from hockeystick.numerics.multiprecision import mp

    b = mp.exp(-epsilon)
    height = -mp.expm1(-epsilon) / (2 * (gamma + b * (1 - gamma)))
    return height * ((1 - 2 * gamma) * b if 2 * gamma < 1 else 2 * gamma - 1)


@dominating_pair.register
def _(mechanism: Staircase) -> DominatingPair:
    epsilon, gamma = mechanism.epsilon, mechanism.gamma
    if epsilon == 0.0:
        return DominatingPair(None, None)
    if epsilon == math.inf:
        return _of_uniform_noise(gamma)
    if gamma == 0.5:
        return both(RandomizedResponsePairLoss(epsilon))
    return both(StaircaseLoss(epsilon, gamma))


def _of_uniform_noise(gamma: float | None) -> DominatingPair:
    """Return the pair of uniform noise on [-gamma, gamma], of unequal supports."""
    if gamma is None or gamma <= 0.5:
        return infinity_mass_pair()
    shown = FloatAndDecimal(*(1 / (2 * one) for one in FloatAndDecimal.of(gamma)))
    return both(PartlyInfiniteLoss(None, shown, Fraction(1), 0.0))
