"""The loss of multivariate Laplace noise: a density in closed form, whatever the dimension."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, final

import numpy as np

from hockeystick.mechanisms.noise.laplace import Laplace
from hockeystick.mechanisms.noise.multivariate_laplace import MultivariateLaplace
from hockeystick.numerics import ULP, FloatAndDecimal, decimal
from hockeystick.privacy_loss.core.base import Masses, ProfiledLoss
from hockeystick.privacy_loss.core.infinity_mass import NoiselessLoss
from hockeystick.privacy_loss.core.registry import DominatingPair, NoAnalysisError, dominating_pair
from hockeystick.privacy_loss.core.uncertain_endpoints import DensityLoss, UncertainEdges, cut_edges
from hockeystick.privacy_loss.noise.laplace import reach_of
from hockeystick.privacy_loss.noise.multivariate_laplace_masses import SNAP, axis_of, log_masses

if TYPE_CHECKING:
    from mpmath import mpf

# Distances in units of the scale, and dimensions, for which floats hold what is computed.
_REACHES: Final = (1e-6, 1e7)
_DIMENSIONS: Final = 10**8


@final
@dataclass(frozen=True, slots=True)
class MultivariateLaplaceLoss(DensityLoss, ProfiledLoss):
    """The loss of noise of density ``~ exp(-|z|)`` on R^n, n >= 2, at distance ``e = 1/scale``.

    P is centred at u and Q at 0, so that ``l = |x| - |x - u|`` lies between -e and e. That and the
    sum ``|x| + |x - u|`` are prolate spheroidal coordinates, and the sum integrates out:

        p(l) ~ exp(l/2) (1 - T^2)^((n-3)/2) (kappa + 1 - T^2),  T = l/e,
        kappa = (2(n-1)/e) K_(n/2)(e/2) / K_(n/2-1)(e/2).

    Exchanging the two reflects the space, so that both directions have this loss. A pair of
    answers at a smaller distance has a smaller profile: on every line along u the density is
    log-concave, so that the outputs with a loss above eps are a ray; moving P up the line moves
    mass into it.
    """

    scale: float
    dimension: int

    @property
    def reach(self) -> float:
        """The largest loss ``e``, the scale read as the decimal that it prints as."""
        return reach_of(self.scale)

    @property
    def supremum(self) -> float:
        """The largest loss, rounded up over every reading of the scale."""
        return self.reach * (1.0 + 2.0 * ULP)

    @property
    def exact_supremum(self) -> FloatAndDecimal:
        return FloatAndDecimal.over(1, self.scale)

    @property
    def infimum(self) -> float:
        return -self.supremum

    @property
    def endpoint_tolerance(self) -> float:
        return SNAP * self.reach

    def uncertain_cells(self, edges: UncertainEdges) -> Masses:
        """Return the masses of the density, under P and, reflected, under Q."""
        axis = axis_of(self.reach, self.dimension)
        with np.errstate(all="ignore"):
            cut = cut_edges(edges, self.reach)
            mirrored = UncertainEdges(
                -cut.at[::-1], cut.error[::-1], cut.width[::-1], cut.width_error[::-1]
            )
        log_p, error_p = log_masses(axis, cut)
        log_q, error_q = (values[::-1] for values in log_masses(axis, mirrored))
        return Masses(log_p, log_q, np.maximum(error_p, error_q))

    def delta(self, epsilon: mpf, perturbation: int = 0) -> mpf:
        """Return the profile, to as many digits as mpmath works with."""
        from hockeystick.precision.multivariate_laplace import multivariate_laplace_delta

        distance = 1 / (decimal(self.scale) * (1 - Fraction(ULP) * perturbation))
        return multivariate_laplace_delta(epsilon, distance, self.dimension)


@dominating_pair.register
def _(mechanism: MultivariateLaplace) -> DominatingPair:
    scale, dimension = mechanism.scale, mechanism.dimension
    if dimension == 1:
        return dominating_pair(Laplace(scale))
    if scale == math.inf:
        return DominatingPair(None, None)
    if scale == 0.0:
        return DominatingPair(NoiselessLoss(1.0, True), NoiselessLoss(1.0, False))
    if not (_REACHES[0] <= reach_of(scale) <= _REACHES[1] and dimension <= _DIMENSIONS):
        raise NoAnalysisError(
            f"multivariate Laplace noise is analysed for scales from {1 / _REACHES[1]:g} to "
            f"{1 / _REACHES[0]:g} and up to {_DIMENSIONS:,} dimensions"
        )
    loss = MultivariateLaplaceLoss(scale, dimension)
    return DominatingPair(loss, loss)
