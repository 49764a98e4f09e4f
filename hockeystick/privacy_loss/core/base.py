"""What an accountant may ask of the privacy loss of one run in one direction."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from hockeystick.numerics import Ball, FloatAndDecimal
from hockeystick.privacy_loss.bounds.cumulants import Cumulants
from hockeystick.privacy_loss.bounds.moment_bounds import MomentBounds
from hockeystick.privacy_loss.bounds.zcdp_line import ZCDPLine, of_gaussian

if TYPE_CHECKING:
    from mpmath import mpc, mpf

    from hockeystick.kernels.series import Array
    from hockeystick.tradeoffs import Profile

# More than what a supremum is rounded up by, relatively.
_ROUNDING: Final = 2.0**-46
# Exponentials beyond this are taken as infinite.
_LARGEST_EXPONENT: Final = 700.0


class CGFEstimate(NamedTuple):
    """An estimate of ``K(c) = ln E_P[exp(c L)]`` and its first two derivatives; proves nothing."""

    value: float
    first_derivative: float
    second_derivative: float


NOTHING: Final = FloatAndDecimal(Fraction(0), Fraction(0))


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
        ...


class PrivacyLoss(ABC):
    """The privacy loss ``L = ln dP/dQ`` under ``P`` of one run, for one ordered pair (P, Q).

    A loss is a frozen value and never knows how often its mechanism runs. What only some losses can
    say is None of the others. Those that can be read in more ways than on the real axis derive from
    ``CellLoss``, ``AnalyticLoss``, ``ProfiledLoss`` or several.
    """

    __slots__ = ()

    @abstractmethod
    def cgf_estimate(self, c: float) -> CGFEstimate:
        """Return K and two derivatives at a real ``c > 0``, fast and unproven."""

    @property
    @abstractmethod
    def supremum(self) -> float:
        """The largest value that the loss takes, or an upper bound of it; inf where it has none."""

    @property
    def least_supremum(self) -> float:
        """A lower bound of the largest value: the supremum less its rounding, where that is all."""
        return self.supremum * (1.0 - _ROUNDING) if self.supremum < math.inf else math.inf

    @abstractmethod
    def cgf_bounds(self, c: float) -> Ball:
        """Return ``K(c)`` at a real ``c > 0`` with a proven error."""

    @property
    def last_order(self) -> float:
        """The largest c at which K is known to be bounded; inf where there is none."""
        return math.inf

    @property
    def corners(self) -> tuple[float, ...]:
        """Where the slope of a bound of K jumps, inside its domain."""
        return ()

    def cgf_upper(self, c: float) -> float:
        """Return an upper bound of K at a real ``c > 0``, one found faster than K where known."""
        known = self.cgf_bounds(c)
        return known.midpoint + known.radius

    @property
    def infinity_mass(self) -> FloatAndDecimal:
        """The probability that the loss is infinite."""
        return NOTHING

    @property
    def finite(self) -> PrivacyLoss | None:
        """The loss given that it is finite; None where that is 0."""
        return self

    @property
    def constant(self) -> tuple[float, float] | None:
        """Ends of what a finite loss exceeds ``without_constant`` by; None for nothing."""
        return None

    @property
    def without_constant(self) -> PrivacyLoss | None:
        """The loss less the constant; None where that is 0."""
        return self

    @property
    def opposite(self) -> PrivacyLoss | None:
        """The loss in the other direction, None where a loss alone does not tell it."""
        return None

    @property
    def expanded(self) -> tuple[tuple[PrivacyLoss, int], ...]:
        """The losses that this one is the sum of, with their counts, where they are few."""
        return ((self, 1),)

    @property
    def attained(self) -> PrivacyLoss | None:
        """The attained loss, of a pair of data sets: the loss itself where it is exact, or None.

        Where only an upper bound of the mechanism's losses is known, lower ends rest on this one.
        """
        return self

    @property
    def closed_form_profile(self) -> ClosedFormProfile | None:
        """The privacy profile in closed form; None where there is none."""
        return None

    @property
    def closed_form_dominating_loss(self) -> PrivacyLoss:
        """A loss with a closed form that dominates this one; itself where none is known.

        Only its profile may be read, at ``eps >= 0``. Where neighbours may be exchanged, it is that
        of both directions.
        """
        return self

    def proven_profile(self) -> Profile | None:
        """Return the profile of one run with proven ends; None where there is none."""
        return None

    @property
    def clt_mu_squared(self) -> float:
        """What a run adds to ``mu^2`` in the central limit theorem; an approximation.

        The chi-square divergence ``exp(K(1)) - 1``, unless a loss has a closed form of its own.
        """
        exponent = self.cgf_estimate(1.0).value
        return math.expm1(exponent) if exponent < _LARGEST_EXPONENT else math.inf

    @property
    def dominating_mu_squared(self) -> Fraction | None:
        """``mu^2`` of a Gaussian that dominates the loss, an upper bound; None where none is known.

        The trade-off functions of (P, Q) and of (Q, P) are at least ``G_mu`` (Dong, Roth and Su
        2022, definition 2.6). So are those of mixtures whose weights are the same under P and
        under Q, as hockey-stick divergences are jointly convex: sampling costs at most what each
        of the cases does that it chooses from. Numbers mean the decimals that they print as; what
        is no short fraction is rounded up to 40 digits, so that sums of many stay short.
        """
        return None

    def zcdp_line(self) -> ZCDPLine | None:
        """Return what line lies above the Renyi divergences of one run; None where none is known.

        ``D_alpha(P||Q)`` and ``D_alpha(Q||P)`` are at most ``rho alpha`` for alpha in (1, omega),
        rounding included (Bun and Steinke 2016, definition 1.1; Bun, Dwork, Rothblum and Steinke
        2018, definition 1). It is the least rho for Gaussians, sampled or not, for randomized
        response of two outcomes and for guarantees; an upper bound elsewhere. A loss that may be
        infinite has none, nor has one that is neither bounded on both sides nor known to stay
        below a Gaussian's.
        """
        return of_gaussian(self.dominating_mu_squared)

    def cumulants(self) -> Cumulants | None:
        """Return the first four cumulants of one run under P and under Q, fast and unproven.

        They have some 12 digits, the fourth next to the square of the variance; those that come
        from cells have some 6. None where they are not known, or out of reach of floats.
        """
        return None

    def moment_bounds(self) -> MomentBounds | None:
        """Return proven enclosures for one run, some 1e-3 wide relative to themselves.

        None where none are known, or the moments are out of reach of floats.
        """
        return None


class ProfiledLoss(PrivacyLoss):
    """A loss whose privacy profile has a closed form."""

    __slots__ = ()

    @abstractmethod
    def delta(self, epsilon: mpf, perturbation: int = 0) -> mpf:
        """Return the hockey-stick divergence of one run, to mpmath's current precision.

        Parameters mean the decimals that they print as; ``perturbation`` = 1 or -1 moves each by
        one unit in the last place to the less or the more private side, to cover every other
        reading.
        """

    @property
    def closed_form_profile(self) -> ClosedFormProfile:
        """``delta``."""
        return self.delta


class Decay(Protocol):
    """How fast ``|M|`` falls along a vertical line."""

    def exponent(self, y: float) -> float:
        """Return ``b`` such that ``|M(c + i v)| <= M(c) exp(-b)`` for all ``v >= y``."""
        ...


class ContourRule(Protocol):
    """A quadrature for M, proven for ``0 < Re z <= c_high`` and ``|Im z| <= y_high``."""

    @property
    def nodes(self) -> int:
        """How many terms one value of M takes."""
        ...

    def line(self, c: float, step: float, count: int) -> ContourValues:
        """Return ``ln M(c + i k step)`` for ``k < count``."""
        ...

    def reference_line(self, c: float, step: float, count: int) -> list[mpc]:
        """Return the same by mpmath, to its current precision and the rule's tolerance."""
        ...


class TailValues(NamedTuple):
    """``J exp(-scale)`` at equidistant points of a vertical line, and a bound on the error."""

    scale: float
    real: Array
    imag: Array
    error: Array


class TailRule(Protocol):
    """A quadrature for J, proven on one line up to one height."""

    @property
    def nodes(self) -> int:
        """How many terms one value of J takes."""
        ...

    def line(self, c: float, step: float, count: int) -> TailValues:
        """Return J at ``c + i k step`` for ``k < count``."""
        ...


class TailSplit(Protocol):
    """The transform in two positive parts, ``M = A + J``: the small losses and the large ones.

    J is smooth, so that it falls fast along a line even where A hardly falls.
    """

    def bulk(self, c: float) -> float:
        """Return ``ln A(c)``, fast and unproven."""
        ...

    def bulk_upper(self, c: float, log_tolerance: float) -> float:
        """Return a proven upper bound of ``ln A(c)``, to a tolerance in A."""
        ...

    def decay(self, c: float) -> Decay:
        """Return how J falls, next to ``M(c)``, along ``Re z = c``, if it does."""
        ...

    def rule(self, c: float, y_high: float, log_tolerance: float) -> TailRule | None:
        """Return a quadrature whose error in J is below ``exp(log_tolerance)``; None if none is."""
        ...


class AnalyticLoss(PrivacyLoss):
    """A loss with an analytic cgf: ``ln M`` is known on vertical lines, with proven errors."""

    __slots__ = ()

    @property
    @abstractmethod
    def out_of_range(self) -> bool:
        """Whether the parameters are out of range, so that no contour integral is possible."""

    @abstractmethod
    def quadrature_available(self, c: float) -> bool:
        """Return whether the quadrature is available on the vertical line through c."""

    def cgf_estimates(self, orders: Sequence[float]) -> Sequence[float]:
        """Return K at several ``c > 0``, fast and unproven."""
        return [self.cgf_estimate(c).value for c in orders]

    @abstractmethod
    def decay(self, c: float) -> Decay:
        """Return a proven bound on how ``|M|`` falls along ``Re z = c``."""

    @abstractmethod
    def rule(self, c_high: float, y_high: float, log_tolerance: float) -> ContourRule | None:
        """Return a quadrature whose error in M is below ``exp(log_tolerance)``; None if none is."""

    def tail_split(self, threshold: float) -> TailSplit | None:
        """Return the split into losses well above a threshold and the rest; None for none."""
        return None


class Masses(NamedTuple):
    """Logarithms of masses under P and under Q, and a bound on each one's error."""

    log_p: Array
    log_q: Array
    error: Array


class Atoms(NamedTuple):
    """Losses that have a probability of their own, ascending, with ``ln P`` of each.

    ``error`` bounds the error of each ``ln P``. Under Q an atom has ``exp(-loss)`` times as much.
    """

    loss: Array
    log_p: Array
    error: Array


class KnownDistribution(Hashable, Protocol):
    """What a loss with a known distribution has: its ends, atoms, and masses between edges."""

    @property
    def infimum(self) -> float:
        """The least value."""
        ...

    @property
    def supremum(self) -> float:
        """The largest value."""
        ...

    @property
    def displacement(self) -> float:
        """How far from an edge asked for the edge of a mass may lie."""
        ...

    def atoms(self) -> Atoms:
        """Return the atoms."""
        ...

    def cells(self, edges: Array) -> Masses:
        """Return the masses of the part without atoms between neighbouring edges."""
        ...
