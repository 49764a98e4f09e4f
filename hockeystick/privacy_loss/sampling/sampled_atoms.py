"""The loss of a mechanism with discrete outputs on a Poisson sample: atoms again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final, final

from hockeystick.privacy_loss.bounds.sixth_moments import sixth_power
from hockeystick.privacy_loss.bounds.zcdp_line import ZCDPLine, lowest, of_ends
from hockeystick.privacy_loss.core.atomic import LEAST, AtomicLoss
from hockeystick.privacy_loss.core.base import Atoms
from hockeystick.privacy_loss.sampling.sampled import log_mixed, sampled_delta
from hockeystick.privacy_loss.sampling.subsampling_map import SubsamplingMap

if TYPE_CHECKING:
    from mpmath import mpf

# Exponentials beyond this are taken as infinite.
_LARGEST_EXPONENT: Final = 700.0


@final
@dataclass(frozen=True, slots=True)
class SampledAtomsLoss(AtomicLoss):
    """``SampledLoss`` of a loss with atoms only: the sums over atoms stay sums over atoms.

    Removing, ``l' = ln(1 - p + p e^l)`` has ``p' = p_l (p + (1-p) e^-l)``; adding,
    ``l' = -ln(1 - p + p e^-l)`` keeps its probability.

    References:
        Zhu, Dong and Wang, AISTATS 2022, theorem 11.
    """

    inner: AtomicLoss
    rate: float | Fraction
    removing: bool

    @property
    def attained(self) -> SampledAtomsLoss | None:
        """The loss itself where the inner one is attained: by data of the one record or none."""
        return self if self.inner.attained is self.inner else None

    @property
    def _map(self) -> SubsamplingMap:
        """The map from the inner losses to the sampled ones."""
        return SubsamplingMap(self.rate, self.removing)

    @property
    def supremum(self) -> float:
        """The image of the largest inner loss, rounded up."""
        return self._map.supremum(self.inner.supremum)

    @property
    def infimum(self) -> float:
        """The image of the least inner loss, rounded down."""
        return self._map.infimum(self.inner.infimum)

    @property
    def unsampled(self) -> AtomicLoss:
        """The inner loss."""
        return self.inner

    @property
    def clt_mu_squared(self) -> float:
        """Return ``p^2 chi^2`` of the inner pair."""
        exponent = self.inner.cgf_estimate(1.0).value
        if exponent > _LARGEST_EXPONENT:
            return math.inf
        return float(self.rate) ** 2 * math.expm1(exponent)

    @property
    def dominating_mu_squared(self) -> Fraction | None:
        """That of the inner loss."""
        return self.inner.dominating_mu_squared

    def atoms(self) -> Atoms:
        """Return the images of the inner atoms."""
        return _mapped(self)

    def nodes(self, first: int, count: int) -> tuple[list[mpf], list[mpf]]:
        """Return the images of some of the inner atoms by mpmath."""
        from mpmath import mp

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

    def omitted(self, c: float) -> float:
        """Return the inner bound and Q's: a sampled loss is at most the inner one's positive part.

        Removing, an outcome has at most its masses under P and under Q together. Adding, the loss
        is bounded whatever the inner one is.
        """
        left = self.inner.omitted(c)
        if left == -math.inf:
            return left
        return min(max(left, LEAST), LEAST + c * max(self.supremum, 0.0)) + math.log(2.0)

    def cgf_upper(self, c: float) -> float:
        """Return ``ln(1 - p + p e^k)`` with k that of the inner loss: powers are convex."""
        return log_mixed(self.inner.cgf_upper(c), float(self.rate))

    def zcdp_line(self) -> ZCDPLine | None:
        """Return the line by the ends, or by quasi-convexity that of the inner loss."""
        return lowest((of_ends(self.infimum, self.supremum), self.inner.zcdp_line()))

    @property
    def sixth_moment_upper(self) -> float:
        """That by the ends, or of the inner loss: a sampled one is nearer to 0."""
        by_ends = sixth_power(max(-self.infimum, self.supremum))
        return min(by_ends, self.inner.sixth_moment_upper)

    def delta(self, epsilon: mpf, perturbation: int = 0) -> mpf:
        """Return the profile, for epsilon >= 0."""
        return sampled_delta(self.inner.delta, self.rate, self.removing, epsilon, perturbation)


@lru_cache(maxsize=64)
def _mapped(loss: SampledAtomsLoss) -> Atoms:
    """Return the images of the inner atoms."""
    return loss._map.atoms(loss.inner.atoms())
