"""Losses of two points, and of a mixture of which it is known which part was used."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Final, TypeAlias, final

import numpy as np

from hockeystick.errors import ParameterError
from hockeystick.numerics import ULP, Ball, FloatAndDecimal
from hockeystick.numerics.multiprecision import mp, mpf
from hockeystick.precision.profiles import exact, three_points
from hockeystick.privacy_loss.bounds.moments import (
    Cumulants,
    FourCumulants,
    LawBounds,
    MomentBounds,
    ZCDPLine,
    of_ends,
)
from hockeystick.privacy_loss.core.atomic import AtomicLoss, read_only_atoms
from hockeystick.privacy_loss.core.base import (
    LARGEST_EXPONENT,
    Array,
    Atoms,
    CGFEstimate,
    ClosedFormProfile,
    DominatingPair,
    Masses,
    PrivacyLoss,
    both,
)
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.uncertain_endpoints import (
    DensityLoss,
    UncertainEdges,
    masses_between,
)

# Above this argument a hyperbolic sine may overflow.
_LARGE: Final = 300.0


@final
@dataclass(frozen=True, slots=True)
class RandomizedResponsePairLoss(AtomicLoss):
    """Infinite with probability ``failure``, otherwise ``+eps`` or ``-eps`` as e^eps to 1.

    The same in both directions. It dominates every (eps, failure)-DP release; without failures,
    ``K(c) = ln(cosh((c + 1/2) eps) / cosh(eps/2))``. Accountants split the infinity mass off first;
    atoms and contours are those without.

    References:
        Kairouz, Oh and Viswanath 2017, theorem 2.
    """

    epsilon: float
    failure: float = 0.0

    def cgf_estimate(self, c: float) -> CGFEstimate:
        if self.failure > 0.0:
            return CGFEstimate(math.inf, math.inf, 0.0)
        slope = math.tanh((c + 0.5) * self.epsilon)
        decay = math.exp(-(c + 0.5) * self.epsilon)
        curvature = (2.0 * self.epsilon * decay / (1.0 + decay * decay)) ** 2
        return CGFEstimate(self._value(c), self.epsilon * slope, curvature)

    def cgf_bounds(self, c: float) -> Ball:
        """Return K and its round-off: that of two hyperbolic sines, damped by the logarithm."""
        if self.failure > 0.0:
            return Ball(math.inf, 0.0)
        value = self._value(c)
        return Ball(value, ULP * (32.0 + 4.0 * min((c + 1.0) * self.epsilon, _LARGE)) * value)

    def _value(self, c: float) -> float:
        """Return ``ln(1 + 2 sinh((c+1) eps/2) sinh(c eps/2) / cosh(eps/2))``, which is K."""
        high, low = 0.5 * (c + 1.0) * self.epsilon, 0.5 * c * self.epsilon
        if high > _LARGE:
            both = math.log1p(math.exp(-2.0 * (high + low)))
            return c * self.epsilon + both - math.log1p(math.exp(-self.epsilon))
        return math.log1p(2.0 * math.sinh(high) * math.sinh(low) / math.cosh(high - low))

    @property
    def infinity_mass(self) -> FloatAndDecimal:
        return FloatAndDecimal.of(self.failure)

    @property
    def finite(self) -> RandomizedResponsePairLoss | None:
        return RandomizedResponsePairLoss(self.epsilon) if self.epsilon else None

    same_both_ways = True

    @property
    def supremum(self) -> float:
        return math.inf if self.failure > 0.0 else self.epsilon

    @property
    def exact_supremum(self) -> FloatAndDecimal | None:
        return FloatAndDecimal.of(self.epsilon) if self.failure == 0.0 else None

    def zcdp_line(self) -> ZCDPLine | None:
        return of_ends(-self.epsilon, self.epsilon) if self.failure == 0.0 else None

    def cumulants(self) -> Cumulants | None:
        if self.failure > 0.0 or not 1e-70 <= self.epsilon <= 1e70:
            return None  # some are no normal floats
        e, mean, variance = self.epsilon, math.tanh(0.5 * self.epsilon), _variance(self.epsilon)
        third = 2.0 * mean * variance * e**3
        fourth = -2.0 * variance * (1.0 - 3.0 * mean * mean) * e**4
        return Cumulants(
            FourCumulants(e * mean, variance * e * e, -third, fourth),
            FourCumulants(-e * mean, variance * e * e, third, fourth),
        )

    def moment_bounds(self) -> MomentBounds | None:
        if self.failure > 0.0 or not 1e-90 <= self.epsilon <= 600.0:
            return None  # the third power or ``e^-eps`` is no normal float
        e, mean, variance = self.epsilon, math.tanh(0.5 * self.epsilon), _variance(self.epsilon)
        less, more = 1.0 - 32.0 * ULP * (1.0 + e), 1.0 + 32.0 * ULP * (1.0 + e)
        law = LawBounds(
            mean_lower=e * mean * less,
            mean_upper=e * mean * more,
            variance_lower=variance * e * e * less,
            variance_upper=variance * e * e * more,
            third_upper=variance * (1.0 + mean * mean) * e**3 * more,
        )
        mirrored = law._replace(mean_lower=-law.mean_upper, mean_upper=-law.mean_lower)
        return MomentBounds(law, mirrored)

    @property
    def out_of_range(self) -> bool:
        return self.failure > 0.0 or not 1e-100 <= self.epsilon <= 1e100

    def atoms(self) -> Atoms:
        losses = (-self.epsilon, self.epsilon)
        log_p = -math.log1p(math.exp(-self.epsilon))
        error = 8.0 * ULP * (1.0 + self.epsilon)
        return read_only_atoms(losses, (log_p - self.epsilon, log_p), (error, error))

    def nodes(self, first: int, count: int) -> tuple[list[mpf], list[mpf]]:
        part = three_points(exact(self.epsilon), mp.zero)[first : first + count]
        return [loss for loss, _ in part], [mass for _, mass in part]

    def delta(self, epsilon: mpf, perturbation: int = 0) -> mpf:
        """Return ``failure + (1 - failure) (e^eps - e^epsilon)_+ / (1 + e^eps)``, down to -eps.

        Below -eps both values exceed epsilon: ``failure + (1 - failure) (1 - e^epsilon)``.
        """
        own, failure = (exact(v) * (1 + perturbation * ULP) for v in (self.epsilon, self.failure))
        failure = min(failure, mp.one)
        if epsilon >= own:
            return failure
        of_one = mp.expm1(epsilon - own) / (1 + mp.exp(-own))
        return failure - (1 - failure) * min(of_one, mp.expm1(epsilon))


def _variance(epsilon: float) -> float:
    """Return ``1 - tanh(eps/2)^2``, the variance of two points at 1 and -1."""
    small = math.exp(-epsilon)
    return 4.0 * small / (1.0 + small) ** 2


def infinity_mass_pair(share: float = 1.0) -> DominatingPair:
    """Return the pair whose loss is infinite with some probability, and else 0."""
    return both(RandomizedResponsePairLoss(0.0, share))


NO_PRIVACY: Final = infinity_mass_pair()


def extreme_pair(cost: float) -> DominatingPair | None:
    """Return the dominating pair of a release that costs 0 or inf; None in between."""
    if cost == 0.0:
        return DominatingPair(None, None)
    return NO_PRIVACY if cost == math.inf else None


def two_point_pair(epsilon: float, failure: float) -> DominatingPair:
    """Return the dominating pair of all (epsilon, failure)-DP releases."""
    if epsilon == math.inf:
        return NO_PRIVACY
    if epsilon == failure == 0.0:
        return DominatingPair(None, None)
    return both(RandomizedResponsePairLoss(epsilon, failure))


Weight: TypeAlias = float | Fraction
Component: TypeAlias = tuple[Weight, CellLoss | None]

# Weights below this are no floats to full precision; a decimal 1e-300 is not below.
_SMALLEST_WEIGHT: Final = math.nextafter(1e-300, 0.0)
# The largest number of masses that are held in memory at a time.
_MOST_NUMBERS: Final = 2**22


@final
@dataclass(frozen=True, slots=True)
class ObservedMixtureLoss(DensityLoss):
    """The loss of ``i ~ w``, which is observed, and then P_i against Q_i.

    As ``ln (w_i P_i) / (w_i Q_i) = L_i``, under P the loss is L_i with probability w_i: masses,
    ``M = sum w_i M_i`` and ``delta = sum w_i delta_i`` are all means over i.

    ``components`` are pairs of a positive weight and a loss, None for perfect privacy
    (a loss of 0). The weights' exact values add up to 1; one given as a float is known to one unit
    in the last place, which every error includes.
    """

    components: tuple[Component, ...]

    @property
    def attained(self) -> PrivacyLoss | None:
        """The loss itself where every component is attained; else the mixture of what is."""
        known = [(weight, loss.attained if loss else None) for weight, loss in self.components]
        if all(new is old for (_, new), (_, old) in zip(known, self.components, strict=True)):
            return self
        # A loss without cells may be left out: that is post-processing.
        return observed_mixture(
            (weight, loss if isinstance(loss, CellLoss) else None) for weight, loss in known
        )

    @property
    def closed_form_profile(self) -> ClosedFormProfile | None:
        profiles: list[tuple[Fraction, ClosedFormProfile]] = []
        for weight, loss in self.components:
            profile = loss.closed_form_profile if loss else _perfect_profile
            if profile is None or not isinstance(weight, Fraction):
                return None
            profiles.append((weight, profile))
        return partial(_mean_delta, profiles)

    @property
    def supremum(self) -> float:
        return max(loss.supremum if loss else 0.0 for _, loss in self.components)

    @property
    def infimum(self) -> float:
        return min(loss.infimum if loss else 0.0 for _, loss in self.components)

    @property
    def endpoint_tolerance(self) -> float:
        return max(loss.endpoint_tolerance if loss else 0.0 for _, loss in self.components)

    @property
    def dominating_mu_squared(self) -> Fraction | None:
        squares = [loss.dominating_mu_squared for _, loss in self.components if loss]
        known = [square for square in squares if square is not None]
        return max(known, default=Fraction(0)) if len(known) == len(squares) else None

    def atoms(self) -> Atoms:
        columns = []
        for weight, loss in self.components:
            one = loss.atoms() if loss else Atoms(np.zeros(1), np.zeros(1), np.zeros(1))
            error = one.error + _weight_error(weight, one.log_p)
            columns.append((one.loss, one.log_p + math.log(weight), error))
        return merged(Atoms(*map(np.concatenate, zip(*columns, strict=True))))

    def cells(self, edges: Array) -> Masses:
        known = [(weight, loss) for weight, loss in self.components if loss]
        block = max(_MOST_NUMBERS // max(len(known), 1), 1)
        starts = range(0, len(edges) - 1, block)
        parts = (edges[start : start + block + 1] for start in starts)
        found = [
            _weighted_sum(known, [loss.cells(part) for _, loss in known], len(part))
            for part in parts
        ]
        return Masses(*(np.concatenate(parts) for parts in zip(*found, strict=True)))

    def uncertain_cells(self, edges: UncertainEdges) -> Masses:
        known = [(weight, loss) for weight, loss in self.components if loss]
        return _weighted_sum(
            known, [masses_between(loss, edges) for _, loss in known], edges.at.size
        )

    def cgf_estimate(self, c: float) -> CGFEstimate:
        """Return K and two derivatives, with the tilted weights ``w M / sum w M``."""
        zero = CGFEstimate(0.0, 0.0, 0.0)
        parts = [loss.cgf_estimate(c) if loss else zero for _, loss in self.components]
        logs = [math.log(weight) for weight, _ in self.components]
        value = _log_mean_exp(logs, [part.value for part in parts])
        if value == math.inf:
            return CGFEstimate(math.inf, math.inf, 0.0)
        return CGFEstimate.of_mixture(value, logs, parts)

    def cgf_bounds(self, c: float) -> Ball:
        """Return ``ln(1 + sum w (M - 1))``, by both ends of the components' moments."""
        logs = [math.log(weight) for weight, _ in self.components]
        parts = [loss.cgf_bounds(c) if loss else Ball(0.0, 0.0) for _, loss in self.components]
        low = _log_mean_exp(logs, [max(part.midpoint - part.radius, 0.0) for part in parts])
        high = _log_mean_exp(logs, [part.midpoint + part.radius for part in parts])
        if high == math.inf:
            return Ball(_log_mean_exp(logs, [part.midpoint for part in parts]), math.inf)
        size = 64.0 + 4.0 * len(logs) - 8.0 * min(logs)
        # Where M is large the sum's relative error is an absolute one of K.
        round_off = ULP * size * min(high, 1.0) + 8.0 * ULP * high
        return Ball(0.5 * (low + high), 0.5 * (high - low) + round_off)

    def zcdp_line(self) -> ZCDPLine | None:
        lines = [loss.zcdp_line() for _, loss in self.components if loss]
        known = [line for line in lines if line]
        if len(known) < len(lines):
            return None
        return ZCDPLine(max(line.rho for line in known), min(line.omega for line in known))


def observed_mixture(components: Iterable[Component]) -> CellLoss | None:
    """Return the loss of a mixture; None for perfect privacy.

    The weights of equal losses are added up.

    Raises:
        ParameterError: If a weight is negative or too small, or they do not add up to 1.
    """
    weights: dict[CellLoss | None, Weight] = {}
    for weight, loss in components:
        if not (weight == 0 or _SMALLEST_WEIGHT <= weight <= 1):
            raise ParameterError("weight", weight, f"0, or a number from {_SMALLEST_WEIGHT:g} to 1")
        if weight > 0:
            # A float and a fraction make a float.
            weights[loss] = weights[loss] + weight if loss in weights else weight
    total = math.fsum(weights.values())
    if not abs(total - 1.0) <= 4.0 * ULP * (1.0 + len(weights)):
        raise ParameterError("weights", total, "numbers that add up to 1")
    known = tuple((weight, loss) for loss, weight in weights.items())
    if set(weights) == {None}:
        return None
    if len(known) == 1:
        return known[0][1]
    return ObservedMixtureLoss(known)


def _mean_delta(
    profiles: Sequence[tuple[Fraction, ClosedFormProfile]], epsilon: mpf, perturbation: int = 0
) -> mpf:
    with mp.extraprec(40):
        total = mp.zero
        for weight, profile in profiles:
            chance = mp.mpf(weight.numerator) / weight.denominator
            total += chance * profile(epsilon, perturbation)
    return +total


def _perfect_profile(epsilon: mpf, perturbation: int = 0) -> mpf:
    """Return the profile of P = Q, ``(1 - e^epsilon)_+``."""
    return max(-mp.expm1(epsilon), 0)


def _weight_error(weight: Weight, log_mass: Array) -> Array:
    """Return the error of ``ln w + ln m`` by the weight, its logarithm and the sum, not by m."""
    size = np.where(np.isfinite(log_mass), np.abs(log_mass), 0.0)
    return np.asarray(ULP * (2.0 + 5.0 * abs(math.log(weight)) + size))


def _weighted_sum(
    known: Sequence[tuple[Weight, CellLoss]], found: Sequence[Masses], edges: int
) -> Masses:
    if not known:
        none = np.full(edges - 1, -math.inf)
        return Masses(none, none.copy(), np.zeros(none.size))
    sides = []
    for side in (0, 1):
        parts = [(w, one[side], one.error) for (w, _), one in zip(known, found, strict=True)]
        logs = [math.log(weight) + log for weight, log, _ in parts]
        errors = [error + _weight_error(weight, log) for weight, log, error in parts]
        sides.append(log_sum(np.array(logs), np.array(errors)))
    return Masses.of(*sides)


def merged(atoms: Atoms) -> Atoms:
    """Return atoms in ascending order, those of the same loss added up."""
    order = np.argsort(atoms.loss, kind="stable")
    loss, log_p, error = (column[order] for column in atoms)
    starts = np.flatnonzero(np.append(True, loss[1:] > loss[:-1]))
    if starts.size >= loss.size:
        return Atoms(loss, log_p, error)
    counts = np.diff(np.append(starts, loss.size))
    largest = np.maximum.reduceat(log_p, starts)
    total = np.add.reduceat(np.exp(log_p - np.repeat(largest, counts)), starts)
    round_off = ULP * (16.0 + 2.0 * counts + np.abs(largest))
    error = np.maximum.reduceat(error, starts) + round_off
    return Atoms(loss[starts], largest + np.log(total), error)


def log_sum(logs: Array, errors: Array) -> tuple[Array, Array]:
    """Return the logarithms of sums of exponentials over the first axis, and proven errors.

    If each term t_i is known up to a factor ``e^(+-e_i)``, the sum is known up to the largest of
    these, and up to ``sum_i t_i (e^(e_i) - 1)``.
    """
    with np.errstate(all="ignore"):
        largest = logs.max(axis=0)
        largest = np.where(np.isfinite(largest), largest, 0.0)
        less = logs - largest
        share = np.exp(less)
        total = share.sum(axis=0)
        value = largest + np.log(total)
        errors = errors + ULP * np.where(share > 0.0, 8.0 - less, 0.0)
        off = np.exp(np.minimum(less + errors, LARGEST_EXPONENT)) * -np.expm1(-errors)
        relative = off.sum(axis=0) / total
        # -ln(1 - r) <= r (1 + r) up to 1/2.
        together = np.where(relative <= 0.5, relative * (1.0 + relative), math.inf)
        greatest = np.where(share > 0.0, errors, 0.0).max(axis=0)
        hidden = ((share == 0.0) & (off > 0.0)).any(axis=0) | np.isnan(off).any(axis=0)
        error = np.minimum(together, np.where(hidden, math.inf, greatest))
        error = error + ULP * (8.0 + 2.0 * len(logs) + 2.0 * np.abs(value))
        empty = np.isneginf(logs).all(axis=0) & np.isfinite(errors).all(axis=0)
    error = np.where(np.isnan(error), math.inf, error)
    return np.where(empty, -math.inf, value), np.where(empty, 0.0, error)


def _log_mean_exp(logs: Sequence[float], exponents: Sequence[float]) -> float:
    """Return ``ln(1 + sum e^log (e^k - 1))`` for ``k >= 0``, small sums without cancellation."""
    largest = max(exponents)
    if largest == math.inf:
        return math.inf
    if largest <= LARGEST_EXPONENT:
        both = zip(logs, exponents, strict=True)
        return math.log1p(math.fsum(math.exp(log) * math.expm1(k) for log, k in both))
    terms = [log + k for log, k in zip(logs, exponents, strict=True)]
    greatest = max(terms)
    return greatest + math.log(math.fsum(math.exp(one - greatest) for one in terms))
