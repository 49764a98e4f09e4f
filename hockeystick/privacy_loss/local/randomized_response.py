"""The loss of randomized response: of two outcomes, or of three."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from hockeystick.mechanisms.local.randomized_response import RandomizedResponse
from hockeystick.numerics import ULP, FloatAndDecimal
from hockeystick.privacy_loss.core.atomic import FewAtoms, both
from hockeystick.privacy_loss.core.registry import DominatingPair, dominating_pair
from hockeystick.privacy_loss.core.two_point import RandomizedResponsePairLoss, infinity_mass_pair

if TYPE_CHECKING:
    from hockeystick.precision.atoms import AtomList


@final
@dataclass(frozen=True, slots=True)
class RandomizedResponseLoss(FewAtoms):
    """``+-eps`` as e^eps to 1, and 0 for the K - 2 categories that are neither of the two.

    The same in both directions:
    ``delta(eps') = (e^eps - e^eps')_+ / (e^eps + K - 1)`` for ``eps' >= 0``.

    References:
        Kairouz, Oh and Viswanath, "Extremal Mechanisms for Local Differential Privacy", 2014.
    """

    epsilon: float
    categories: int

    @property
    def opposite(self) -> RandomizedResponseLoss:
        return self

    @property
    def supremum(self) -> float:
        return self.epsilon

    @property
    def exact_supremum(self) -> FloatAndDecimal:
        return FloatAndDecimal.of(self.epsilon)

    def exact_atoms(self, perturbation: int = 0) -> AtomList:
        from hockeystick.precision.atoms import randomized_response
        from hockeystick.precision.profiles import exact

        return randomized_response(exact(self.epsilon) * (1 + perturbation * ULP), self.categories)


@dominating_pair.register
def _(mechanism: RandomizedResponse) -> DominatingPair:
    if mechanism.epsilon == 0.0:
        return DominatingPair(None, None)
    if mechanism.epsilon == math.inf:
        return infinity_mass_pair()
    if mechanism.categories == 2:
        return both(RandomizedResponsePairLoss(mechanism.epsilon))
    return both(RandomizedResponseLoss(mechanism.epsilon, mechanism.categories))
