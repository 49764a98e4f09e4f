"""The interface of the privacy loss of one run in one direction."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import singledispatch
from typing import ClassVar, Final, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hockeystick.mechanisms import Mechanism
from hockeystick.numerics import Ball, FloatAndDecimal
from hockeystick.numerics.multiprecision import mpc, mpf
from hockeystick.privacy_loss.bounds.moments import Cumulants, MomentBounds, ZCDPLine, of_gaussian
from hockeystick.tradeoffs import Profile, TradeOff

Array: TypeAlias = NDArray[np.float64]

# More than what a supremum is rounded up by, relatively.
_ROUNDING: Final = 2.0**-46
# Exponentials beyond this are taken as infinite.
LARGEST_EXPONENT: Final = 700.0
# Sums of more nodes than this for one value of K are not worth their time.
_MOST_NODES: Final = 2_000_000


class CGFEstimate(NamedTuple):
    """An estimate of ``K(c) = ln E_P[exp(c L)]`` and its first two derivatives; proves nothing."""

    value: float
    first_derivative: float
    second_derivative: float

    @classmethod
    def of_sums(cls, shift: float, value: float, slope: float, curvature: float) -> CGFEstimate:
        """Return K of M and two derivatives, all over ``exp(shift)``; ``value`` is M less 1."""
        total = math.exp(-shift) + value
        slope /= total
        k = math.log1p(value) if shift == 0.0 else shift + math.log(total)
        return cls(k, slope, max(curvature / total - slope * slope, 0.0))

    @classmethod
    def of_mixture(
        cls, value: float, logs: Sequence[float], parts: Sequence[CGFEstimate]
    ) -> CGFEstimate:
        """Return a mixture's K and its derivatives, by logarithms of weights and the parts."""
        both = [
            (math.exp(log + part.value - value), part)
            for log, part in zip(logs, parts, strict=True)
        ]
        first = math.fsum(w * part.first_derivative for w, part in both)
        second = math.fsum(
            w * (part.second_derivative + (part.first_derivative - first) ** 2) for w, part in both
        )
        return cls(value, first, second)


NO_INFINITY_MASS: Final = FloatAndDecimal(Fraction(0), Fraction(0))


class ContourValues(NamedTuple):
    """``ln M`` at equidistant points of a vertical line, and a bound on each one's error.

    The real parts are of ``ln|M|``; the imaginary parts are determined up to multiples of 2 pi.
    """

    real: Array
    imag: Array
    error: Array


class ClosedFormProfile(Protocol):
    """A privacy profile, to mpmath's current precision."""

    def __call__(self, epsilon: mpf, perturbation: int = 0) -> mpf:
        """Return the hockey-stick divergence of one run at an epsilon, see ``ProfiledLoss``."""


class PrivacyLoss(ABC):
    """The privacy loss ``L = ln dP/dQ`` under ``P`` of one run, for one ordered pair (P, Q).

    A loss is a frozen value and does not depend on the number of runs. Losses with more than K on
    the real axis derive from ``CellLoss`` (interval masses), ``AnalyticLoss`` (K on vertical
    contours), ``ProfiledLoss`` (a closed-form privacy profile), or several. What not all have, is
    None, or the loss itself, elsewhere:

        exact_supremum          noise of bounded loss, responses     epsilon at delta 0, exactly
        least_supremum          outcomes, trade-off functions        epsilon at delta 0, from below
        largest_order           guarantees, bounds by runs           orders of divergences
        breakpoints             Renyi curves, bounds by runs         orders of divergences
        cgf_upper               mixtures, samples, integer noise     K beyond all cells
        infinity_mass, finite   no noise, unequal supports           split off from delta
        constant, without_...   no noise, unequal supports           added to epsilon
        opposite                what one direction tells of both     pairs; fewer directions
        expanded                compositions, sequences of noise     parts one by one
        attained                all but guarantees and bounds        lower ends
        attained_in_samples     selections                           lower ends of samples
        also_attained           allocations, selections              lower ends in closed form
        dominating              losses between two others            upper ends in closed form
        analytic                losses with quadrature               contours
        closed_form_profile     one run of most noise                closed forms
        proven_profile          (sampled) Gaussians, Laplace         trade-offs, tables of delta
        clt_mu_squared          all                                  central limits, guesses
        dominating_mu_squared   Gaussians and their mixtures         zCDP
        zcdp_line, zcdp_rho     bounded losses, Gaussians            zCDP
        cumulants, moments      losses with cells, Gaussians         Edgeworth, Berry-Esseen
    """

    __slots__ = ()

    # Whether the loss of (P, Q) is that of (Q, P).
    same_both_ways: ClassVar[bool] = False
    # Whether the attained loss needs one example alone: then samples attain that of its sample.
    attained_in_samples: bool = False

    @abstractmethod
    def cgf_estimate(self, c: float) -> CGFEstimate:
        """Return K and two derivatives at a real ``c > 0``, fast and unproven."""

    @property
    @abstractmethod
    def supremum(self) -> float:
        """The largest value that the loss takes, or an upper bound of it; inf where it has none."""

    @property
    def exact_supremum(self) -> FloatAndDecimal | None:
        """The largest value exactly, which the loss takes; None where ``supremum`` is rounded."""
        return None

    @property
    def least_supremum(self) -> float:
        """A lower bound of the largest value: the supremum less its rounding, where that is all."""
        return self.supremum * (1.0 - _ROUNDING) if self.supremum < math.inf else math.inf

    @abstractmethod
    def cgf_bounds(self, c: float) -> Ball:
        """Return ``K(c)`` at a real ``c > 0`` with a proven error."""

    @property
    def largest_order(self) -> float:
        """The largest c at which K is known to be finite; inf for every c."""
        return math.inf

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """The orders at which the derivative of a bound of K jumps, inside its domain."""
        return ()

    def cgf_upper(self, c: float) -> float:
        """Return an upper bound of K at a real ``c > 0``, a faster one than ``cgf_bounds``."""
        known = self.cgf_bounds(c)
        return known.midpoint + known.radius

    @property
    def infinity_mass(self) -> FloatAndDecimal:
        """The probability that the loss is infinite."""
        return NO_INFINITY_MASS

    @property
    def finite(self) -> PrivacyLoss | None:
        """The loss given that it is finite; None where that is constantly 0."""
        return self

    @property
    def constant(self) -> tuple[float, float] | None:
        """Ends of a constant c with L = c + ``without_constant``; None for c = 0."""
        return None

    @property
    def without_constant(self) -> PrivacyLoss | None:
        """The loss minus the constant; None where that is constantly 0."""
        return self

    @property
    def opposite(self) -> PrivacyLoss | None:
        """The loss of (Q, P); None where this one does not determine it."""
        return self if self.same_both_ways else None

    @property
    def expanded(self) -> tuple[tuple[PrivacyLoss, int], ...]:
        """The independent losses whose sum this one is, with their counts, where they are few."""
        return ((self, 1),)

    @property
    def attained(self) -> PrivacyLoss | None:
        """The attained loss, of a pair of data sets: the loss itself where it is exact, or None.

        Where only a dominating pair is known, lower bounds are those of this loss.
        """
        return self

    @property
    def also_attained(self) -> tuple[PrivacyLoss, ...]:
        """Losses that other data attain: of many runs they have closed forms, not the attained."""
        return ()

    @property
    def dominating(self) -> PrivacyLoss:
        """The loss that upper bounds are of, whatever is attained; it may have a closed form.

        Under replace-one adjacency its profile is that of both directions at ``eps >= 0`` only.
        """
        return self

    @property
    def analytic(self) -> AnalyticLoss | None:
        """The same loss with an analytic cgf; None where none is known."""
        return None

    @property
    def closed_form_profile(self) -> ClosedFormProfile | None:
        """The privacy profile in closed form; None where there is none."""
        return None

    def proven_profile(self) -> Profile | None:
        """Return the profile of one run with proven ends; None where there is none."""
        return None

    @property
    def clt_mu_squared(self) -> float:
        """The contribution of one run to ``mu^2`` in the central limit theorem; an approximation.

        The chi-square divergence ``exp(K(1)) - 1``, unless a loss has a closed form of its own.
        """
        exponent = self.cgf_estimate(1.0).value
        return math.expm1(exponent) if exponent < LARGEST_EXPONENT else math.inf

    @property
    def dominating_mu_squared(self) -> Fraction | None:
        """``mu^2`` of a Gaussian that dominates the loss, an upper bound; None where none is known.

        The trade-off functions of (P, Q) and of (Q, P) are at least ``G_mu`` (Dong, Roth and Su
        2022, definition 2.6). So are those of mixtures whose weights are the same under P and
        under Q, as hockey-stick divergences are jointly convex: the bound of every component bounds
        the mixture. Numbers mean the decimals that they print as; long fractions are rounded up to
        40 digits.
        """
        return None

    def zcdp_line(self) -> ZCDPLine | None:
        """Return the zCDP line above the Renyi divergences of one run; None where none is known.

        ``D_alpha(P||Q)`` and ``D_alpha(Q||P)`` are at most ``rho alpha`` for alpha in (1, omega),
        rounding included (Bun and Steinke 2016, definition 1.1; Bun, Dwork, Rothblum and Steinke
        2018, definition 1). It is the least rho for Gaussians, sampled or not, for Laplace noise,
        binary randomized response and guarantees; an upper bound elsewhere. A loss with infinity
        mass has none, nor has one that is neither bounded nor dominated by a Gaussian.
        """
        return of_gaussian(self.dominating_mu_squared)

    @property
    def zcdp_rho(self) -> Fraction | None:
        """A rho with ``D_alpha <= rho alpha`` at all orders, exactly: half the dominating mu^2."""
        square = self.dominating_mu_squared
        return None if square is None else square / 2

    def cumulants(self) -> Cumulants | None:
        """Return the first four cumulants of one run under P and under Q, fast and unproven.

        Relative errors are about 1e-12, that of the fourth relative to the squared variance; from
        cells, about 1e-6. None where they are not known, or out of the range of floats.
        """
        return None

    def moment_bounds(self) -> MomentBounds | None:
        """Return proven enclosures for one run, of relative width about 1e-3.

        None where none are known, or the moments are out of the range of floats.
        """
        return None


class ProfiledLoss(PrivacyLoss):
    """A loss whose privacy profile has a closed form."""

    __slots__ = ()

    @abstractmethod
    def delta(self, epsilon: mpf, perturbation: int = 0) -> mpf:
        """Return the hockey-stick divergence of one run, to mpmath's current precision.

        Parameters mean the decimals that they print as; ``perturbation`` = 1 or -1 moves each by
        one unit in the last place to the less or the more private side, which covers every reading.
        """

    @property
    def closed_form_profile(self) -> ClosedFormProfile:
        return self.delta


class Decay(Protocol):
    """A bound of the decay of ``|M|`` along a vertical contour."""

    def exponent(self, y: float) -> float:
        """Return ``b`` such that ``|M(c + i v)| <= M(c) exp(-b)`` for all ``v >= y``."""


class ContourRule(Protocol):
    """A quadrature for M, proven for ``0 < Re z <= c_high`` and ``|Im z| <= y_high``."""

    @property
    def nodes(self) -> int:
        """The number of terms for one value of M."""

    def line(self, c: float, step: float, count: int) -> ContourValues:
        """Return ``ln M(c + i k step)`` for ``k < count``."""

    def reference_line(self, c: float, step: float, count: int) -> list[mpc]:
        """Return the same values by mpmath, to its precision and the rule's tolerance."""


class TailValues(NamedTuple):
    """``J exp(-scale)`` at equidistant points of a vertical line, and a bound on the error."""

    scale: float
    real: Array
    imag: Array
    error: Array


class TailRule(Protocol):
    """A quadrature for J, proven on one contour up to one height."""

    @property
    def nodes(self) -> int:
        """The number of terms for one value of J."""

    def line(self, c: float, step: float, count: int) -> TailValues:
        """Return J at ``c + i k step`` for ``k < count``."""


class TailSplit(Protocol):
    """The transform in two positive parts, ``M = A + J``: the bulk A and the tail J.

    J is that of large losses and smooth, so that it decays fast even where A hardly decays.
    """

    def bulk(self, c: float) -> CGFEstimate:
        """Return ``ln A(c)`` and two derivatives, fast and unproven."""

    def bulk_upper(self, c: float, log_tolerance: float) -> float:
        """Return a proven upper bound of ``ln A(c)``, to a tolerance in A."""

    def decay(self, c: float) -> Decay:
        """Return the decay of J relative to ``M(c)`` along ``Re z = c``."""

    def rule(self, c: float, y_high: float, log_tolerance: float) -> TailRule | None:
        """Return a quadrature whose error in J is below ``exp(log_tolerance)``; None if none is."""


class AnalyticLoss(PrivacyLoss):
    """A loss with an analytic cgf: ``ln M`` is known on vertical lines, with proven errors."""

    __slots__ = ()

    @property
    @abstractmethod
    def out_of_range(self) -> bool:
        """Whether the parameters are out of range, so that no contour integral is possible."""

    @property
    def analytic(self) -> AnalyticLoss | None:
        return None if self.out_of_range else self

    @abstractmethod
    def quadrature_available(self, c: float) -> bool:
        """Return whether the quadrature is available on the vertical line through c."""

    def cgf_estimates(self, orders: Sequence[float]) -> Sequence[float]:
        """Return K at several ``c > 0``, fast and unproven."""
        return [self.cgf_estimate(c).value for c in orders]

    @abstractmethod
    def decay(self, c: float) -> Decay:
        """Return a proven bound of the decay of ``|M|`` along ``Re z = c``."""

    @abstractmethod
    def rule(self, c_high: float, y_high: float, log_tolerance: float) -> ContourRule | None:
        """Return a quadrature whose error in M is below ``exp(log_tolerance)``; None if none is."""

    def cgf_by_rule(
        self, c: float, estimate: float, log_accuracy: float, *, of_transform: bool = True
    ) -> Ball | None:
        """Return K by a quadrature, given an estimate of it; None where there is none of use.

        Its error is relative to M, and then to a K below 1; or to K, if not that of the transform.
        """
        if not 0.0 < estimate < math.inf:
            return None
        size = estimate + min(math.log(estimate), 0.0) if of_transform else math.log(estimate)
        rule = self.rule(c, 0.0, size + log_accuracy)
        if rule is None or rule.nodes > _MOST_NODES:
            return None
        real, _, error = rule.line(c, 0.0, 1)
        found = Ball(float(real[0]), float(error[0]))
        return found if math.isfinite(sum(found)) else None

    def far_mode(self, c: float) -> tuple[float, float]:
        """Return ln of the odds and of the weight of a mode of rare outputs under a tilt by c."""
        return -math.inf, -math.inf

    def delta_estimate(self, epsilon: float) -> float:
        """Return delta of one run, fast and unproven; 0 where it is not known."""
        profile = self.proven_profile()
        return float(profile.at(np.array([epsilon])).estimate[0]) if profile else 0.0

    def near_outputs(self, threshold: float, steepness: float) -> NearLoss | None:
        """Return the loss without outputs well beyond a threshold; None where it is not cut.

        It is for orders up to about ``steepness / threshold``.
        """
        return None

    def tail_split(self, threshold: float) -> TailSplit | None:
        """Return the split into tail, losses well above a threshold, and bulk; None if none is."""
        return None


class FarMasses(NamedTuple):
    """``ln J_P``, ``ln J_Q`` and ``ln(J_P - J_Q)`` of far outputs, and a relative error."""

    log_p: float
    log_q: float
    log_excess: float
    error: float


class NearLoss(AnalyticLoss):
    """A loss without its far outputs, which have masses of their own; its total mass is below 1.

    An output u is far with a probability ``W(u)`` that is the same under P and under Q.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def far(self) -> FarMasses:
        """The masses of the far outputs."""

    @abstractmethod
    def log_far_power(self, order: float) -> float:
        """Return an upper bound of ``ln E_Q[W exp(-order L)]``, for ``order > 0``."""


class Masses(NamedTuple):
    """Logarithms of masses under P and under Q, and a bound on each one's error."""

    log_p: Array
    log_q: Array
    error: Array

    @classmethod
    def of(cls, p: tuple[Array, Array], q: tuple[Array, Array]) -> Masses:
        """Return masses of which either has an error of its own."""
        return cls(p[0], q[0], np.maximum(p[1], q[1]))


class Atoms(NamedTuple):
    """The atoms of a loss, ascending, with ``ln P`` of each.

    ``error`` bounds the error of each ``ln P``. Under Q an atom has ``exp(-loss)`` times as much.
    """

    loss: Array
    log_p: Array
    error: Array


class DominatingPair(NamedTuple):
    """The losses of one run in the two directions; None for perfect privacy.

    The two are composed separately, and only the final answers are compared.
    """

    removing: PrivacyLoss | None
    adding: PrivacyLoss | None


def both(loss: PrivacyLoss) -> DominatingPair:
    """Return the pair of a loss that is the same in both directions."""
    return DominatingPair(loss, loss)


class NoAnalysisError(Exception):
    """No dominating pair is known; the reason, and the part of the plan that it is about."""

    part: str = "plan"


@singledispatch
def dominating_pair(mechanism: Mechanism) -> DominatingPair:
    """Return the dominating pair of one run of a mechanism.

    Raises:
        NoAnalysisError: If none is known.
    """
    raise NoAnalysisError(f"no privacy loss is known for a {type(mechanism).__name__}")


@singledispatch
def dominating_pair_of_tradeoff(tradeoff: TradeOff) -> DominatingPair:
    """Return the dominating pair of all releases with a trade-off function."""
    raise NoAnalysisError(f"no privacy loss is known for a {type(tradeoff).__name__}")


@singledispatch
def sampled_loss(loss: PrivacyLoss, rate: float | Fraction, removing: bool) -> PrivacyLoss:
    """Return the loss of one run on a Poisson sample, at a rate between 0 and 1.

    Raises:
        NoAnalysisError: If the distribution of the loss itself is not known.
    """
    raise NoAnalysisError("only some bounds of its privacy loss are known, not its distribution")
