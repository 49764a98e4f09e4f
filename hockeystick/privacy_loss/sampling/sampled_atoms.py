"""The loss of a mechanism with discrete outputs on a Poisson sample: atoms again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, final

from hockeystick.privacy_loss.core.atomic import LOG_LEAST_MASS, AtomicLoss
from hockeystick.privacy_loss.core.base import Atoms
from hockeystick.privacy_loss.sampling.sampled import SubsampledLoss, sampled_delta

if TYPE_CHECKING:
    from mpmath import mpf


@final
@dataclass(frozen=True, slots=True)
class SampledAtomsLoss(SubsampledLoss, AtomicLoss):
    """``SampledLoss`` of a loss with atoms only: the sums over atoms stay sums over atoms.

    Removing, ``l' = ln(1 - p + p e^l)`` has ``p' = p_l (p + (1-p) e^-l)``; adding,
    ``l' = -ln(1 - p + p e^-l)`` keeps its probability.

    References:
        Zhu, Dong and Wang, AISTATS 2022, theorem 11.
    """

    inner: AtomicLoss
    rate: float | Fraction
    removing: bool

    def atoms(self) -> Atoms:
        return _mapped(self)

    def nodes(self, first: int, count: int) -> tuple[list[mpf], list[mpf]]:
        from hockeystick.numerics.multiprecision import mp
        from hockeystick.precision.profiles import exact

        rate = exact(self.rate)
        losses, masses = self.inner.nodes(first, count)
        if self.removing:
            masses = [
                mass * (rate + (1 - rate) * mp.exp(-loss))
                for loss, mass in zip(losses, masses, strict=True)
            ]
            return [mp.log1p(rate * mp.expm1(loss)) for loss in losses], masses
        return [-mp.log1p(rate * mp.expm1(-loss)) for loss in losses], masses

    def log_omitted_moment(self, c: float) -> float:
        """Return the inner bound and Q's: a sampled loss is at most the inner one's positive part.

        Removing, an outcome has at most its masses under P and under Q together. Adding, the loss
        is bounded whatever the inner one is.
        """
        left = self.inner.log_omitted_moment(c)
        if left == -math.inf:
            return left
        return min(
            max(left, LOG_LEAST_MASS), LOG_LEAST_MASS + c * max(self.supremum, 0.0)
        ) + math.log(2.0)

    def delta(self, epsilon: mpf, perturbation: int = 0) -> mpf:
        return sampled_delta(self.inner.delta, self.rate, self.removing, epsilon, perturbation)


@lru_cache(maxsize=64)
def _mapped(loss: SampledAtomsLoss) -> Atoms:
    """Return the images of the inner atoms."""
    return loss._map.atoms(loss.inner.atoms())
