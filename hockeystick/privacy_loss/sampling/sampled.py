"""The loss of any mechanism on a Poisson sample, from the mechanism's dominating pair."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Final, Self, final

from hockeystick.numerics import ULP, Ball
from hockeystick.privacy_loss.bounds.sixth_moments import sixth_power
from hockeystick.privacy_loss.bounds.zcdp_line import ZCDPLine, lowest, of_ends
from hockeystick.privacy_loss.core.base import Atoms, ClosedFormProfile, Masses
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.interval_masses import cgf_bounds
from hockeystick.privacy_loss.core.uncertain_endpoints import DensityLoss, UncertainEdges
from hockeystick.privacy_loss.sampling.subsampling_map import SubsamplingMap

if TYPE_CHECKING:
    from mpmath import mpf

# Exponentials beyond this are taken as infinite.
_LARGEST_EXPONENT: Final = 700.0


class SubsampledLoss(CellLoss):
    """The base of all losses on a Poisson sample, by the ``SubsamplingMap`` of the inner loss."""

    __slots__ = ()

    inner: CellLoss
    rate: float | Fraction
    removing: bool

    @property
    def _map(self) -> SubsamplingMap:
        """The map from the inner losses to the sampled ones."""
        return SubsamplingMap(self.rate, self.removing)

    @property
    def attained(self) -> Self | None:
        return self if self.inner.attained is self.inner else None

    @property
    def supremum(self) -> float:
        return self._map.supremum(self.inner.supremum)

    @property
    def infimum(self) -> float:
        return self._map.infimum(self.inner.infimum)

    @property
    def unsampled(self) -> CellLoss:
        return self.inner

    @property
    def endpoint_tolerance(self) -> float:
        """That of the inner loss: the map has slope at most 1."""
        return self.inner.endpoint_tolerance

    @property
    def clt_mu_squared(self) -> float:
        exponent = self.inner.cgf_estimate(1.0).value
        if exponent > _LARGEST_EXPONENT:
            return math.inf
        return float(self.rate) ** 2 * math.expm1(exponent)

    @property
    def dominating_mu_squared(self) -> Fraction | None:
        return self.inner.dominating_mu_squared

    def cgf_upper(self, c: float) -> float:
        """Return ``ln(1 - p + p e^k)``, with k that of the inner loss: powers are convex."""
        return log_mixed(self.inner.cgf_upper(c), float(self.rate))

    def zcdp_line(self) -> ZCDPLine | None:
        """Return the line by the ends, or by quasi-convexity that of the inner loss."""
        return lowest((of_ends(self.infimum, self.supremum), self.inner.zcdp_line()))

    @property
    def sixth_moment_upper(self) -> float:
        """That by the ends, or of the inner loss: sampling reduces ``|L|``."""
        by_ends = sixth_power(max(-self.infimum, self.supremum))
        return min(by_ends, self.inner.sixth_moment_upper)


@final
@dataclass(frozen=True, slots=True)
class SampledLoss(SubsampledLoss, DensityLoss):
    """The loss of ``(1-p) Q + p P`` against Q (removing), or P against ``(1-p) P + p Q`` (adding).

    ``inner`` is the loss of P against Q in the same direction. The loss is
    ``ln(1 - p + p e^l)`` when removing and ``-ln(1 - p + p e^-l)`` when adding; p is neither 0
    nor 1.

    References:
        Zhu, Dong and Wang, AISTATS 2022, theorem 11: the two pairs dominate Poisson sampling under
        add-remove adjacency.
    """

    inner: CellLoss
    rate: float | Fraction
    removing: bool

    @property
    def closed_form_profile(self) -> ClosedFormProfile | None:
        """That of the sample, where the inner loss has one: ``sampled_delta``."""
        inner = self.inner.closed_form_profile
        return None if inner is None else partial(sampled_delta, inner, self.rate, self.removing)

    def cgf_bounds(self, c: float) -> Ball:
        return cgf_bounds(self, c, self.cgf_upper)

    def atoms(self) -> Atoms:
        return self._map.atoms(self.inner.atoms())

    def uncertain_cells(self, edges: UncertainEdges) -> Masses:
        return self._map.masses(self.inner, edges)


def sampled_delta(
    inner: ClosedFormProfile,
    rate: float | Fraction,
    removing: bool,
    epsilon: mpf,
    perturbation: int = 0,
) -> mpf:
    """Return the profile of a sampled loss at an epsilon >= 0, from the inner profile d.

    Removing, ``p d(ln(1 + (e^eps - 1)/p))``; adding, with ``c = 1 - e^eps (1-p)``,
    ``c d(-ln(1 - (1 - e^-eps)/p))`` while c is positive, and 0 from there on:
    ``P - e^eps ((1-p) P + p Q) = c P - e^eps p Q``. Both ask d for an epsilon >= 0 only.
    """
    from hockeystick.numerics.multiprecision import mp
    from hockeystick.precision.profiles import exact

    guard = 64 + 2 * max(0, -int(mp.mag(exact(rate))))
    with mp.extraprec(guard):
        chance = min(exact(rate) * (1 + perturbation * mp.mpf(ULP)), 1)
        if removing:
            factor, at = chance, mp.log1p(mp.expm1(epsilon) / chance)
        elif chance < 1 and epsilon >= -mp.log1p(-chance):
            return mp.zero
        else:
            factor = 1 - mp.exp(epsilon) * (1 - chance)
            left = 1 + mp.expm1(-epsilon) / chance
            if left <= 0 or factor <= 0:
                return mp.zero
            at = -mp.log1p(mp.expm1(-epsilon) / chance)
    return +(factor * inner(+at, perturbation))


def log_mixed(exponent: float, weight: float) -> float:
    """Return ``ln(1 - w + w e^k)``, rounded up."""
    if exponent > _LARGEST_EXPONENT:
        return (exponent + math.log1p(math.exp(-exponent) / weight)) * (1.0 + 4.0 * ULP)
    return math.log1p(weight * math.expm1(exponent)) * (1.0 + 16.0 * ULP)
