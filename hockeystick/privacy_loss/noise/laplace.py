"""The Laplace mechanism's loss: an atom at either end and a density between, in closed form."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from hockeystick.mechanisms.noise.laplace import Laplace, Staircase
from hockeystick.numerics import ULP, Ball, FloatAndDecimal, decimal
from hockeystick.numerics.multiprecision import mp, mpc, mpf
from hockeystick.precision.lines import laplace_line
from hockeystick.precision.profiles import AtomList, exact, reciprocal, three_points
from hockeystick.privacy_loss.bounds.moments import ZCDPLine, outward
from hockeystick.privacy_loss.core.atomic import ThreePointLoss, log_values
from hockeystick.privacy_loss.core.base import (
    AnalyticLoss,
    Array,
    Atoms,
    CGFEstimate,
    ContourValues,
    DominatingPair,
    Masses,
    ProfiledLoss,
    both,
    dominating_pair,
    dominating_pair_of_tradeoff,
)
from hockeystick.privacy_loss.core.composition import LESS, MORE, edge_pair
from hockeystick.privacy_loss.core.mixtures import RandomizedResponsePairLoss, infinity_mass_pair
from hockeystick.privacy_loss.core.outcomes import PartlyInfiniteLoss
from hockeystick.privacy_loss.core.uncertain_endpoints import (
    ENDPOINT_TOLERANCE,
    DensityLoss,
    UncertainEdges,
    cut_edges,
)
from hockeystick.tradeoffs import IntervalProfile, LaplaceTradeOff, Profile
from hockeystick.tradeoffs.functions.closed_forms import LaplaceProfile

Complex = NDArray[np.complexfloating[Any, Any]]
_LN_2: Final = math.log(2.0)
# Exponents up to this size are left unscaled.
_COMFORTABLE: Final = 200.0
# Below this modulus exp(x) - 1 - x is summed as a series; the number of its terms.
_SERIES: Final = 1.0
_TERMS: Final = 20


@lru_cache(maxsize=1024)
def reach_of(scale: float | Fraction) -> float:
    """Return the reciprocal of a scale, read as the decimal that it prints as."""
    return float(min(1 / decimal(scale), Fraction(sys.float_info.max)))


class ReachLoss(DensityLoss, ProfiledLoss):
    """A loss between ``-e`` and ``e = 1/scale``, which it comes close to or takes."""

    __slots__ = ()

    scale: float | Fraction

    @property
    def reach(self) -> float:
        """The largest loss e, the scale read as the decimal that it prints as."""
        return reach_of(self.scale)

    @property
    def supremum(self) -> float:
        return self.reach * (1.0 + 2.0 * ULP)

    @property
    def exact_supremum(self) -> FloatAndDecimal:
        return FloatAndDecimal.over(1, self.scale)

    @property
    def infimum(self) -> float:
        return -self.supremum


@final
@dataclass(frozen=True, slots=True)
class LaplaceLoss(ReachLoss, AnalyticLoss):
    """The loss of Lap(1, b) against Lap(0, b), the same in both directions, with ``e = 1/b``.

    It is e with probability 1/2, -e with probability ``exp(-e)/2``, and has the density
    ``exp((l - e)/2) / 4`` between. With ``e2(x) = exp(x) - 1 - x``

        M(z) - 1 = ((1+z) e2(z e) + z e2(-(1+z) e)) / (1 + 2z),

    where nothing of first order in e is left to cancel.

    The least rho is ``D_1 = e - 1 + exp(-e)``: on ``sqrt(P Q)`` the loss has atoms of ``x/2`` at
    either end and the density ``x/4`` between, ``x = exp(-e/2)``, so that ``m_k`` is
    ``e^(2k) (1 + e/(2 (2k+1)))`` but for a factor, and

        m_(k+1) / ((2k+1) m_k) = e^2 (4k + 6 + e) / ((2k+3) (4k + 2 + e))

    falls with k (see ``bounds.zcdp_line``).

    References:
        Mironov, "Renyi Differential Privacy", CSF 2017, proposition 6 (the moments).
        Balle, Barthe and Gaboardi 2018, theorem 3 (the profile).
    """

    scale: float | Fraction

    @property
    def out_of_range(self) -> bool:
        return not 1e-100 <= self.reach <= 1e6

    @property
    def endpoint_tolerance(self) -> float:
        return ENDPOINT_TOLERANCE * self.reach

    same_both_ways = True

    def atoms(self) -> Atoms:
        ends = np.array([-self.reach, self.reach])
        error = np.array([4.0 * ULP * (self.reach + 1.0), ULP])
        return Atoms(ends, np.array([-self.reach - _LN_2, -_LN_2]), error)

    def uncertain_cells(self, edges: UncertainEdges) -> Masses:
        """Return ``exp((l - e)/2) (exp(w/2) - 1) / 2`` of cells of width w above l, and under Q.

        These are the masses of a range that ends at the float of e. Stretching it to the true
        one moves each edge by at most one unit in the last place of e, and changes the masses by
        as much times ``1 + e``.
        """
        end = self.reach
        with np.errstate(all="ignore"):
            cut = cut_edges(edges, end)
            low, high, half = cut.at[:-1], cut.at[1:], 0.5 * cut.width
            log_part = np.log(-0.5 * np.expm1(-half))
            log_p = 0.5 * (high - end) + log_part
            log_q = -0.5 * (low + end) + log_part
            moved = np.maximum(cut.error[:-1], cut.error[1:])
            round_off = ULP * (4.0 * end + 2.0 * np.abs(log_part) + 8.0)
            # ln(1 - exp(-w/2)) changes by at most the relative change of w.
            error = 0.5 * moved + round_off + 1.1 * cut.width_error
        error = np.where(cut.width_error < 0.05, error, math.inf)
        empty = half <= 0.0
        log_p, log_q = np.where(empty, -math.inf, log_p), np.where(empty, -math.inf, log_q)
        return Masses(log_p, log_q, np.where(empty, 0.0, error))

    def cgf_estimate(self, c: float) -> CGFEstimate:
        return _steep(c, self.reach) if c * self.reach > 1.0 else _flat(c, self.reach)

    def cgf_bounds(self, c: float) -> Ball:
        if self.out_of_range or c * self.reach > 1e15:
            half = 0.5 * c * self.supremum * (1.0 + 4.0 * ULP)
            return Ball(half, half)
        real, _, error = self.line(c, 0.0, 1)
        return Ball(float(real[0]), float(error[0]))

    def delta(self, epsilon: mpf, perturbation: int = 0) -> mpf:
        end = reciprocal(self.scale) * (1 + perturbation * mp.mpf(ULP))
        return max(mp.zero, -mp.expm1((epsilon - end) / 2))

    def proven_profile(self) -> Profile:
        scale = float(self.scale)
        return IntervalProfile(LaplaceProfile(scale * MORE), LaplaceProfile(scale * LESS))

    def zcdp_line(self) -> ZCDPLine:
        return ZCDPLine(outward(_e2(-self.reach)))

    def quadrature_available(self, c: float) -> bool:
        return not self.out_of_range

    def decay(self, c: float) -> LaplaceLoss:
        return self

    def exponent(self, y: float) -> float:
        """Return 0: the atoms keep |M| from falling, and it is never above ``M(c)``."""
        return 0.0

    def rule(self, c_high: float, y_high: float, log_tolerance: float) -> LaplaceLoss:
        return self

    nodes = 2

    def line(self, c: float, step: float, count: int) -> ContourValues:
        z = c + 1j * (step * np.arange(count, dtype=np.float64))
        end = self.reach
        shift = max(0.0, c * end - _COMFORTABLE)
        with np.errstate(all="ignore"):
            own, own_error = _second_order(z * end, shift)
            other, other_error = _second_order(-(1.0 + z) * end, shift)
            own_share, share = (1.0 + z) / (1.0 + 2.0 * z), z / (1.0 + 2.0 * z)
            less_one = own_share * own + share * other
            error = np.abs(own_share) * (own_error + 16.0 * ULP * np.abs(own))
            error += np.abs(share) * (other_error + 16.0 * ULP * np.abs(other))
            return log_values(less_one.real, less_one.imag, error * (1.0 + 1e-9), shift)

    def reference_line(self, c: float, step: float, count: int) -> list[mpc]:
        return laplace_line(reciprocal(self.scale), c, step, count)


@dominating_pair_of_tradeoff.register(LaplaceTradeOff)
@dominating_pair.register(Laplace)
def _(noise: Laplace | LaplaceTradeOff) -> DominatingPair:
    return edge_pair(noise.scale) or both(LaplaceLoss(noise.scale))


def _flat(c: float, end: float) -> CGFEstimate:
    """Return K and two derivatives from ``M - 1 = N / (1 + 2c)``, for ``c e`` up to 1."""
    x, y = c * end, -(1.0 + c) * end
    grown, fallen = math.expm1(x), math.expm1(y)
    width = 1.0 + 2.0 * c
    own, other = _e2(x), _e2(y)
    value = ((1.0 + c) * own + c * other) / width
    first = own + other + end * ((1.0 + c) * grown - c * fallen)
    second = 2.0 * end * (grown - fallen) + end * end * ((1.0 + c) * math.exp(x) + c * math.exp(y))
    slope = (first - 2.0 * value) / width
    bend = (second - 4.0 * slope) / width
    moment = 1.0 + value
    slope_of_log = slope / moment
    return CGFEstimate(math.log1p(value), slope_of_log, bend / moment - slope_of_log**2)


def _steep(c: float, end: float) -> CGFEstimate:
    """Return K and two derivatives from ``ln((1+c)/(1+2c)) + c e + ln(1 + t)``, for larger ones.

    ``t = c/(1+c) exp(-(1+2c) e)`` is what the atom and the density at the lower end add.
    """
    wide, width = 1.0 + c, 1.0 + 2.0 * c
    small = c / wide * math.exp(-width * end)
    share = small / (1.0 + small)
    growth = 1.0 / c - 1.0 / wide - 2.0 * end
    value = c * end - math.log1p(c / wide) + math.log1p(small)
    slope = end + 1.0 / wide - 2.0 / width + share * growth
    bend = (3.0 + 4.0 * c) / (wide * width) ** 2
    if share > 0.0:
        bend += share * ((1.0 - share) * growth**2 - 1.0 / c**2 + 1.0 / wide**2)
    return CGFEstimate(value, slope, max(bend, 0.0))


def _e2(x: float) -> float:
    """Return ``exp(x) - 1 - x``."""
    if abs(x) > _SERIES:
        return math.expm1(x) - x
    total = 0.0
    for n in range(_TERMS + 1, 1, -1):
        total = (total + 1.0) * x / n
    return total * x


def _second_order(x: Complex, shift: float) -> tuple[Complex, Array]:
    """Return ``(exp(x) - 1 - x) exp(-shift)`` of complex x known to 4 ulp, and its error."""
    size = np.abs(x)
    total = np.zeros_like(x)
    near = np.where(size < _SERIES, x, 0.0)
    for n in range(_TERMS + 1, 1, -1):
        total = (total + 1.0) * near / n
    total = total * near
    one = math.exp(-shift)
    far = np.exp(x - shift) - (1.0 + x) * one
    value = np.where(size < _SERIES, total * one, far)
    # For |x| up to 1 the derivative exp(x) - 1 is at most 1.72 |x|, and the terms add up to no more
    # than 0.72 |x|^2.
    grown = np.exp(np.minimum(x.real - shift, 700.0))
    slope = np.where(size < _SERIES, 1.72 * size * one, grown + one)
    parts = np.where(size < _SERIES, size * size * one, grown + (1.0 + size) * one)
    return value, ULP * (4.0 * size * slope + (12.0 + np.abs(x.real) + shift) * parts)


@final
@dataclass(frozen=True, slots=True)
class StaircaseLoss(ThreePointLoss):
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

    def exact_atoms(self, perturbation: int = 0) -> AtomList:
        """Return the atoms by mpmath; gamma is moved towards 1/2 for a larger loss."""
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
    b = mp.exp(-epsilon)
    height = -mp.expm1(-epsilon) / (2 * (gamma + b * (1 - gamma)))
    return height * ((1 - 2 * gamma) * b if 2 * gamma < 1 else 2 * gamma - 1)


@dominating_pair.register
def _(mechanism: Staircase) -> DominatingPair:
    epsilon, gamma = mechanism.epsilon, mechanism.gamma
    if epsilon == 0.0:
        return DominatingPair(None, None)
    if epsilon == math.inf:
        # Uniform noise on [-gamma, gamma], of unequal supports.
        if gamma is None or gamma <= 0.5:
            return infinity_mass_pair()
        shown = FloatAndDecimal(*(1 / (2 * one) for one in FloatAndDecimal.of(gamma)))
        return both(PartlyInfiniteLoss(None, shown, Fraction(1), 0.0))
    if gamma == 0.5:
        return both(RandomizedResponsePairLoss(epsilon))
    return both(StaircaseLoss(epsilon, gamma))
