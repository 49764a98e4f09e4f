"""The loss of sinh-normal noise: a density, with a profile in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, final

import numpy as np

from hockeystick.mechanisms.noise.sinh_normal import SinhNormal
from hockeystick.numerics import ULP, Ball, decimal
from hockeystick.privacy_loss.bounds.sixth_moments import sixth_power
from hockeystick.privacy_loss.bounds.zcdp_line import ZCDPLine, by_orders
from hockeystick.privacy_loss.core import interval_masses
from hockeystick.privacy_loss.core.base import CGFEstimate, Masses, ProfiledLoss
from hockeystick.privacy_loss.core.cell_loss import UnboundedLoss
from hockeystick.privacy_loss.core.infinity_mass import NoiselessLoss
from hockeystick.privacy_loss.core.registry import DominatingPair, NoAnalysisError, dominating_pair
from hockeystick.privacy_loss.core.uncertain_endpoints import DensityLoss, UncertainEdges
from hockeystick.privacy_loss.noise import sinh_normal_moments
from hockeystick.privacy_loss.noise.normal_masses import log_masses
from hockeystick.privacy_loss.noise.sinh_normal_curve import curve_of

if TYPE_CHECKING:
    from mpmath import mpf

# Below, what a run loses is often beyond 10^9; so it is beyond this rho.
_WIDTHS: Final = (0.25, 1e12)
_LARGEST_RHO: Final = 1e6


@final
@dataclass(frozen=True, slots=True)
class SinhNormalLoss(UnboundedLoss, DensityLoss, ProfiledLoss):
    """The loss of ``A arsinh(N(0, 1/(2 rho))/A)`` with means 1 and 0, the same in both directions.

    At the output ``1/2 + y``

        l(y) = rho A^2 sinh(1/A) sinh(2y/A) - 2 artanh(tanh(y/A) tanh(1/(2A))),

    which is odd, so that exchanging the two reflects the output only, and strictly increasing, as
    ``rho A^2 >= 1``. Its profile rises with rho and falls with A. With z the distance to the mean
    and ``n = A sqrt(2 rho) sinh(z/A)`` its normal coordinate, the profile is the maximum over
    thresholds y of ``Phi(-n_P) - e^eps Phi(-n_Q)``, which changes with a parameter as
    ``e^eps phi(n_Q) dn_Q - phi(n_P) dn_P`` where
    ``e^eps phi(n_Q) cosh(z_Q/A) = phi(n_P) cosh(z_P/A)``: for rho by what has the sign of
    ``tanh(z_Q/A) - tanh(z_P/A) > 0``, for A by that of ``t(z_Q/A) - t(z_P/A) < 0`` with the
    decreasing ``t(x) = tanh(x) - x``.

    References:
        Bun, Dwork, Rothblum and Steinke 2018, section 4 (the noise; its analysis is not used).
    """

    rho: float
    width: float

    def zcdp_line(self) -> ZCDPLine | None:
        """Return the line by orders: the loss is the same in either direction."""
        return by_orders(self)

    @property
    def sixth_moment_upper(self) -> float:
        """That of the loss's closed form.

        ``rho A^2 sinh(1/A) sinh(2|y|/A)``, with ``sinh(z/A) = n/(A sqrt(2 rho))`` of a normal n and
        ``sinh(2 (|z| + 1/2)/A) <= exp(1/A) (1 + 2 sinh(z/A)^2)``; ``E[n^12] = 10395``.
        """
        width, rho = self.width, self.rho
        front = rho * width * width * math.sinh(1.0 / width) * math.exp(1.0 / width)
        share = 1.0 / (rho * width * width)
        return sixth_power(front) * 32.0 * (1.0 + 10395.0 * share**6)

    def uncertain_cells(self, edges: UncertainEdges) -> Masses:
        """Return masses of cells of the output, in the normal coordinates of either mean."""
        curve = curve_of(self.rho, self.width)
        with np.errstate(all="ignore"):
            outputs = curve.outputs(edges)
            own, other = (curve.normal_edges(outputs, side) for side in (1.0, -1.0))
        log_p, error_p = log_masses(own)
        log_q, error_q = log_masses(other)
        return Masses(log_p, log_q, np.maximum(error_p, error_q))

    def cgf_estimate(self, c: float) -> CGFEstimate:
        """Return an estimate of K and two derivatives.

        Where they are infinite, those without the losses that hardly ever occur: large and finite,
        so that a search along c is led back.
        """
        found = sinh_normal_moments.cgf_estimate(self.rho, self.width, c)
        return interval_masses.cgf_estimate(self, c) if found is None else found

    def cgf_bounds(self, c: float) -> Ball:
        """Return K by a trapezoid sum with a proven error, finite for ``c < 1/(exp(2/A) - 1)``."""
        return sinh_normal_moments.cgf_bounds(self.rho, self.width, c)

    def delta(self, epsilon: mpf, perturbation: int = 0) -> mpf:
        """Return the profile; perturbed, of a rho and a width moved to the same side."""
        from hockeystick.precision.sinh_normal import sinh_normal_delta

        unit = Fraction(ULP) * perturbation
        rho, width = decimal(self.rho), decimal(self.width)
        return sinh_normal_delta(epsilon, rho * (1 + unit), width * (1 - unit))


@dominating_pair.register
def _(mechanism: SinhNormal) -> DominatingPair:
    if mechanism.rho == math.inf:
        return DominatingPair(NoiselessLoss(1.0, True), NoiselessLoss(1.0, False))
    if not (_WIDTHS[0] <= mechanism.width <= _WIDTHS[1] and mechanism.rho <= _LARGEST_RHO):
        raise NoAnalysisError(
            f"sinh-normal noise is analysed for widths from {_WIDTHS[0]:g} to {_WIDTHS[1]:g} and "
            f"rho up to {_LARGEST_RHO:g}"
        )
    loss = SinhNormalLoss(mechanism.rho, mechanism.width)
    return DominatingPair(loss, loss)
