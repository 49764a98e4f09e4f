"""Losses of integer noise: discrete Gaussian, discrete Laplace and Skellam."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import ClassVar, Final, TypeAlias, final

import numpy as np

from hockeystick.mechanisms.noise.integer_noise import DiscreteGaussian, DiscreteLaplace, Skellam
from hockeystick.numerics import ULP, Ball, FloatAndDecimal, decimal
from hockeystick.numerics.multiprecision import mp, mpf, working_digits
from hockeystick.numerics.rounding import as_mpf
from hockeystick.precision.integer_noise import (
    bessel_ratios,
    discrete_gaussian_delta,
    discrete_gaussian_nodes,
    discrete_laplace_delta,
    discrete_laplace_nodes,
    skellam_delta,
    skellam_nodes,
)
from hockeystick.privacy_loss.bounds.moments import ZCDPLine, by_orders, outward, sixth_power
from hockeystick.privacy_loss.core.atomic import (
    LOG_LEAST_MASS,
    MOST_ATOMS,
    AtomicLoss,
    kept,
    read_only_atoms,
)
from hockeystick.privacy_loss.core.base import (
    Array,
    Atoms,
    CGFEstimate,
    DominatingPair,
    NoAnalysisError,
    PrivacyLoss,
    ProfiledLoss,
    both,
    dominating_pair,
    sampled_loss,
)
from hockeystick.privacy_loss.core.mixtures import RandomizedResponsePairLoss, infinity_mass_pair

_LARGEST: Final = 1e300
# From this sigma^2 on, Poisson's dual sum falls faster than the sum itself.
_DUAL: Final = 0.16
# Terms of either sum, far more than count.
_TERMS: Final = 32
# Beyond this exponent a term is below any float.
_UNDERFLOW: Final = 745.0


class _ShiftedNoise(ProfiledLoss):
    """``D (2k + D) / (2 sigma^2)`` with the probability of the noise k, in both directions.

    Completing the square, with ``theta(x) = sum over integers k of exp(-(k - x)^2 / (2 sigma^2))``,

        K(c) = c (c+1) D^2 / (2 sigma^2) + ln(theta(cD) / theta(0)),

    where the second term is never positive, and 0 where c D is an integer.

    References:
        Canonne, Kamath and Steinke 2020, theorems 4 (zCDP) and 7 (the profile).
    """

    __slots__ = ()

    sigma: float
    sensitivity: int

    supremum: ClassVar[float] = math.inf

    def zcdp_line(self) -> ZCDPLine:
        """Return the continuous one's (Canonne, Kamath and Steinke 2020, theorem 4)."""
        return ZCDPLine(outward(float(self.zcdp_rho)))

    @property
    def zcdp_rho(self) -> Fraction:
        """``D^2 / (2 sigma^2)``, which ``D_1 = E[L]`` attains: the noise has mean 0."""
        return self.sensitivity**2 * self.half

    @property
    def half(self) -> Fraction:
        """``1 / (2 sigma^2)``, exactly."""
        return 1 / (2 * decimal(self.sigma) ** 2)

    same_both_ways = True

    def cgf_upper(self, c: float) -> float:
        return c * (c + 1.0) * float(self.sensitivity**2 * self.half) * (1.0 + 16.0 * ULP)

    def cgf_bounds(self, c: float) -> Ball:
        return self._moment(c)[0]

    def cgf_estimate(self, c: float) -> CGFEstimate:
        return self._moment(c)[1]

    @property
    def clt_mu_squared(self) -> float:
        """Return ``exp(K(1)) - 1`` with ``K(1) = D^2 / sigma^2``, as D is an integer."""
        exponent = 2.0 * float(self.sensitivity**2 * self.half)
        return math.expm1(exponent) if exponent < 700.0 else math.inf

    def delta(self, epsilon: mpf, perturbation: int = 0) -> mpf:
        """Return ``T(k0) - e^eps T(k0 + D)``; perturbed, the worst or the best reading of sigma.

        Whether delta falls with sigma everywhere is not proven, so that each reading is tried. As
        ``T(k) <= e^(-k^2 / (2 sigma^2))``, far out it is at most ``e^(-(eps sigma / D)^2 / 4)``.
        """
        reach = abs(epsilon) * self.sigma / self.sensitivity
        if reach > 1e9:
            tail = mp.exp(-reach * reach / 4) if perturbation > 0 else mp.zero
            return tail if epsilon > 0 else 1 - mp.exp(epsilon) * (1 - tail)
        sigma = decimal(self.sigma)
        moves = (0,) if perturbation == 0 else (-1, 0, 1)
        readings = (sigma * (1 + move * Fraction(ULP)) for move in moves)
        values = [discrete_gaussian_delta(epsilon, one, self.sensitivity) for one in readings]
        return max(values) if perturbation > 0 else min(values)

    def _moment(self, c: float) -> _Moment:
        half = self.half
        if not c * (c + 1.0) * float(self.sensitivity**2 * half) < _LARGEST:
            return Ball(math.inf, 0.0), CGFEstimate(math.inf, math.inf, 0.0)
        if half <= 0.5 / _DUAL:
            return _by_dual_sum(half, self.sensitivity, c)
        return _by_sum(half, self.sensitivity, c)


@final
@dataclass(frozen=True, slots=True)
class DiscreteGaussianLoss(_ShiftedNoise, AtomicLoss):
    """The loss with its atoms."""

    sigma: float
    sensitivity: int

    @property
    def sixth_moment_upper(self) -> float:
        """That of ``D (2|k| + 3D) / (2 sigma^2)``: ``E[k^6] <= 2 * 3! (2 sigma^2)^3``."""
        half, shift = float(self.half), float(self.sensitivity)
        spread = 12.0 / half**3
        first, second = sixth_power(3.0 * shift * shift * half), sixth_power(2.0 * shift * half)
        return 32.0 * (first + second * spread)

    @kept(16)
    def atoms(self) -> Atoms:
        half, sensitivity = self.half, self.sensitivity
        last, h = _reach(half), float(half)
        k = np.arange(-last - sensitivity, last + 1, dtype=np.float64)
        log_norm, unsure = _log_norm(half)
        exponent = k * k * h
        loss = (2.0 * k + sensitivity) * sensitivity * h
        error = ULP * (4.0 * exponent + 2.0 * np.abs(exponent + log_norm)) + unsure
        return read_only_atoms(loss, -exponent - log_norm, error)

    def nodes(self, first: int, count: int) -> tuple[list[mpf], list[mpf]]:
        least = -_reach(self.half) - self.sensitivity
        sigma = decimal(self.sigma)
        return discrete_gaussian_nodes(sigma, self.sensitivity, least + first, count)

    def log_omitted_moment(self, c: float) -> float:
        """Return ln of the geometric series above the tail of ``p e^(c loss)``, beyond the atoms.

        Below the atoms the losses are negative, and only their probability counts.
        """
        half, shift, last = float(self.half), self.sensitivity, _reach(self.half) + 1
        fall = (2.0 * last + 1.0 - 2.0 * c * shift) * half
        if not fall > 0.0:
            return math.inf
        grown, fallen = half * c * shift * (2.0 * last + shift), half * float(last) ** 2
        above = grown - fallen - math.log(-math.expm1(-fall)) - _log_norm(self.half)[0]
        return max(above + 1e-12 * (grown + fallen + 100.0), LOG_LEAST_MASS) + math.log(2.0)


@final
@dataclass(frozen=True, slots=True)
class WideDiscreteGaussianLoss(_ShiftedNoise):
    """The loss where its atoms are too many: known by K and by the profile of one run."""

    sigma: float
    sensitivity: int


_Moment: TypeAlias = tuple[Ball, CGFEstimate]


def _by_dual_sum(half: Fraction, shift: int, c: float) -> _Moment:
    """Return K from ``theta(x) ~ 1 + 2 sum q_k cos(2 pi k x)``, ``q_k = exp(-2 pi^2 sigma^2 k^2)``.

    ``ln(theta(x)/theta(0)) = ln(1 - 4 sum q_k sin(pi k x)^2 / theta(0))``. The terms' errors are
    those of a sine, at most ``k^2`` times the first one's, and of an exponent.
    """
    square = float(shift**2 * half)
    line = float(Fraction(c) * (Fraction(c) + 1) * shift**2 * half)
    offset = Fraction(c) * shift
    x = math.pi * float(offset - round(offset))
    width = math.pi**2 * float(min(1 / half, Fraction(_UNDERFLOW)))
    weights = [math.exp(-width * k * k) for k in range(1, _TERMS) if width * k * k < _UNDERFLOW]
    terms = list(enumerate(weights, 1))
    norm = 1.0 + 2.0 * math.fsum(weights)
    drop = 4.0 * math.fsum(q * math.sin(k * x) ** 2 for k, q in terms) / norm
    theta = 1.0 + 2.0 * math.fsum(q * math.cos(2 * k * x) for k, q in terms)
    turn = math.pi * shift
    first = -4.0 * turn * math.fsum(k * q * math.sin(2 * k * x) for k, q in terms) / theta
    second = -8.0 * turn**2 * math.fsum(k * k * q * math.cos(2 * k * x) for k, q in terms) / theta
    value, slope = line + math.log1p(-drop), (2.0 * c + 1.0) * square + first
    bend = max(2.0 * square + second - first * first, 0.0)
    error = ULP * (8.0 * line + (64.0 + 16.0 * width) * drop) + 1e-320
    return Ball(value, error), CGFEstimate(value, slope, bend)


def _by_sum(half: Fraction, shift: int, c: float) -> _Moment:
    """Return K from ``theta(n + a) = e^(-a^2 h) (1 + 2 sum e^(-k^2 h) cosh(2 k a h))``, n integer.

    What is left of the squares is ``(c D^2 + n (2 c D - n)) h``, and all terms are positive:
    ``e^(-k^2 h) (cosh(y) - 1) = e^(-k h (k - 2|a|)) (1 - e^-y)^2 / 2`` with ``y = 2 k |a| h``.
    """
    offset = Fraction(c) * shift
    n = round(offset)
    a = abs(offset - n)
    line = float((Fraction(c) * shift**2 + n * (2 * offset - n)) * half)
    places = [k for k in range(1, _TERMS) if k * half * (k - 2 * a) < _UNDERFLOW]
    depths = [float(k * half * (k - 2 * a)) for k in places]
    grown = [math.expm1(-float(2 * k * a * half)) ** 2 for k in places]
    terms = [math.exp(-depth) * rise for depth, rise in zip(depths, grown, strict=True)]
    norm = _norm(float(half))
    unsure = math.fsum((32.0 + 4.0 * d) * t for d, t in zip(depths, terms, strict=True)) / norm
    near = range(-_TERMS, _TERMS + 1)
    b = offset - n
    weights = [math.exp(min(-float(j * half * (j - 2 * b)), 700.0)) for j in near]
    total = math.fsum(weights)
    mean = math.fsum(j * w for j, w in zip(near, weights, strict=True)) / total
    spread = math.fsum((j - mean) ** 2 * w for j, w in zip(near, weights, strict=True)) / total
    h = float(half)
    value = line + math.log1p(math.fsum(terms) / norm)
    slope = (2.0 * (n + mean) + shift) * shift * h
    error = ULP * (8.0 * line + unsure) + 1e-320
    return Ball(value, error), CGFEstimate(value, slope, (2.0 * shift * h) ** 2 * spread)


def _norm(half: float) -> float:
    """Return ``theta(0) = 1 + 2 sum exp(-k^2 h)``, for a large h."""
    return 1.0 + 2.0 * math.fsum(math.exp(-min(half * k * k, _UNDERFLOW)) for k in range(1, _TERMS))


def _log_norm(half: Fraction) -> tuple[float, float]:
    """Return ``ln theta(0)`` and a bound on its error."""
    if half > 0.5 / _DUAL:
        value = math.log(_norm(float(half)))
    else:
        width = math.pi**2 * float(1 / half)
        weights = (math.exp(-min(width * k * k, _UNDERFLOW)) for k in range(1, _TERMS))
        value = 0.5 * math.log(math.pi * float(1 / half)) + math.log1p(2.0 * math.fsum(weights))
    return value, ULP * (32.0 + 8.0 * abs(value))


@lru_cache(maxsize=64)
def _reach(half: Fraction) -> int:
    """Return the k beyond which the noise has less than ``exp(LOG_LEAST_MASS)`` in both tails.

    ``sum over j > k of exp(-j^2 h) <= exp(-(k+1)^2 h) / (1 - exp(-2 (k+1) h))``, and theta >= 1.
    """
    h = float(half)
    last = 0 if h > -2.0 * LOG_LEAST_MASS else math.floor(math.sqrt(-LOG_LEAST_MASS / h))
    while (last + 1.0) ** 2 * h + math.log(
        -math.expm1(-2.0 * (last + 1.0) * h)
    ) < 1.0 - LOG_LEAST_MASS:
        last += max(1, last // 256)
    return last


@dominating_pair.register
def _(mechanism: DiscreteGaussian) -> DominatingPair:
    sigma, sensitivity = mechanism.sigma, mechanism.sensitivity
    if sigma == math.inf:
        return DominatingPair(None, None)
    if sigma == 0.0:
        return infinity_mass_pair()
    half = 1 / (2 * decimal(sigma) ** 2)
    if sensitivity**2 * half > _LARGEST:
        raise NoAnalysisError(
            f"discrete Gaussian noise is analysed for losses below {_LARGEST:g}; "
            "ZCDP(sensitivity^2 / (2 sigma^2)) bounds it"
        )
    # 80 sigma outputs have all but exp(-800).
    if sensitivity + 80.0 * sigma > MOST_ATOMS:
        return both(WideDiscreteGaussianLoss(sigma, sensitivity))
    return both(DiscreteGaussianLoss(sigma, sensitivity))


@sampled_loss.register
def _(loss: WideDiscreteGaussianLoss, rate: float | Fraction, removing: bool) -> PrivacyLoss:
    raise NoAnalysisError(
        f"samples with discrete Gaussian noise are analysed for up to {MOST_ATOMS:,} outputs (80 "
        "sigma and the sensitivity)"
    )


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

    same_both_ways = True

    @kept(16)
    def atoms(self) -> Atoms:
        slope, sensitivity = float(1 / decimal(self.scale)), self.sensitivity
        small = math.exp(-slope)
        step = np.arange(sensitivity + 1, dtype=np.float64)
        loss = slope * (2.0 * step - sensitivity)
        fallen = slope * (sensitivity - step)
        ends = -math.log1p(small)
        inner = math.log(math.tanh(0.5 * slope)) if slope < 1.0 else math.log1p(-small) + ends
        level = np.full(sensitivity + 1, inner)
        level[0] = level[-1] = ends
        log_p = level - fallen
        return read_only_atoms(loss, log_p, ULP * (4.0 * np.abs(log_p) + 4.0 * fallen + 16.0))

    def nodes(self, first: int, count: int) -> tuple[list[mpf], list[mpf]]:
        scale = decimal(self.scale)
        return discrete_laplace_nodes(scale, self.sensitivity, first, count)

    def zcdp_line(self) -> ZCDPLine:
        return ZCDPLine(_divergence(self.scale, self.sensitivity))

    def delta(self, epsilon: mpf, perturbation: int = 0) -> mpf:
        scale = decimal(self.scale) * (1 - perturbation * Fraction(ULP))
        return discrete_laplace_delta(epsilon, scale, self.sensitivity)


@lru_cache(maxsize=256)
def _divergence(scale: float, sensitivity: int) -> float:
    """Return ``D_1``, rounded up."""
    slope = 1 / decimal(scale)
    # What cancels is of the size of D next to D^2/b.
    lost = max(0, math.ceil(-math.log10(slope))) if slope < 1 else 0
    with working_digits(40 + lost):
        h = as_mpf(slope)
        fallen = 2 * mp.exp(-h) * mp.expm1(-sensitivity * h) / mp.expm1(-2 * h)
        return outward(float(h * (sensitivity - fallen)))


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

    supremum: ClassVar[float] = math.inf

    def zcdp_line(self) -> ZCDPLine | None:
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

    @kept(16)
    def atoms(self) -> Atoms:
        """Return the atoms, ascending.

        ``ln p(k)`` is that of 0 minus the steps up to ``|k|``, added up exactly, so that a
        difference of two of these sums is as good as each of its steps, all of one sign.
        """
        variance, sensitivity = self.variance, self.sensitivity
        last = _reach_of_skellam(variance)
        steps = _steps(variance, last + sensitivity + 1)
        whole = [int(math.ldexp(step, _STEP_BITS)) for step in steps]
        falls = list(accumulate(whole, initial=0))
        k = range(-last - sensitivity, last + 1)
        rises = [falls[abs(j + sensitivity)] - falls[abs(j)] for j in k]
        loss, fall, whole_fall = (
            np.ldexp(np.array(row, dtype=np.float64), -_STEP_BITS)
            for row in (rises, [falls[abs(j)] for j in k], falls)
        )
        log_norm, unsure = _log_norm_of_skellam(whole_fall)
        log_p = -fall - log_norm
        return read_only_atoms(loss, log_p, ULP * (4.0 * fall + np.abs(log_p)) + unsure)

    def nodes(self, first: int, count: int) -> tuple[list[mpf], list[mpf]]:
        least = -_reach_of_skellam(self.variance) - self.sensitivity
        variance = decimal(self.variance)
        return skellam_nodes(variance, self.sensitivity, least + first, count)

    def log_omitted_moment(self, c: float) -> float:
        """Return ln of the geometric series above the tail of ``p e^(c loss)``, beyond the atoms.

        Neighbouring terms have the ratio ``r_k (r_k / r_(k+D))^c``, which is at most
        ``r_k ((k+D+1)/(k+1))^c`` and falls in k. Below the atoms the losses are negative.
        """
        atoms, last = self.atoms(), _reach_of_skellam(self.variance)
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
        variance = decimal(self.variance) * (1 - perturbation * Fraction(ULP))
        return skellam_delta(epsilon, variance, self.sensitivity)


@lru_cache(maxsize=4)
def _steps(variance: float, count: int) -> list[float]:
    """Return ``-ln r_k`` for ``k < count``, each within 3 ulp.

    ``ln(1 - x)`` of the exactly rounded ``x = 1 - r`` where r is above 1/2, where it moves by at
    most 1.5 times as much as x; the C library's logarithms are within 2 ulp.
    """
    values, bits = bessel_ratios(decimal(variance), count, 128)
    one = 1 << bits
    return [-math.log1p(-((one - r) / one)) if 2 * r > one else -math.log(r / one) for r in values]


@lru_cache(maxsize=64)
def _reach_of_skellam(v: float) -> int:
    """Return the k beyond which the noise has less than ``exp(LOG_LEAST_MASS)`` in both tails.

    By Chernoff ``P[y >= k] <= exp(-(k asinh(k/v) - k^2 / (sqrt(k^2 + v^2) + v)))``.
    """
    k = 1.0 + math.floor(math.sqrt(-2.0 * LOG_LEAST_MASS * v))
    while k * math.asinh(k / v) - k / (math.hypot(1.0, v / k) + v / k) < 2.0 - LOG_LEAST_MASS:
        k += max(1.0, k // 256)
    return int(k) - 1


def _log_norm_of_skellam(fall: Array) -> tuple[float, float]:
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
