"""Atomic losses: sums over atoms, with proven errors."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, final

import numpy as np

from hockeystick.numerics import ULP, Ball
from hockeystick.numerics.working_precision import working_digits
from hockeystick.privacy_loss.bounds.zcdp_line import ZCDPLine, lowest, of_curve
from hockeystick.privacy_loss.core.analytic_cgf import log_values, mgf_line
from hockeystick.privacy_loss.core.base import (
    AnalyticLoss,
    Atoms,
    CGFEstimate,
    ContourValues,
    Masses,
    PrivacyLoss,
    ProfiledLoss,
)
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.registry import DominatingPair

if TYPE_CHECKING:
    from mpmath import mpc, mpf

    from hockeystick.kernels.series import Array
    from hockeystick.precision.atoms import AtomList

# Unlisted atoms have a log mass of at most this under P, and under Q.
LOG_LEAST_MASS: Final = -800.0
# Mechanisms that need more atoms than this are refused.
MOST_ATOMS: Final = 1_000_000
# The largest number of terms for one value of M on a contour.
_MOST_NODES: Final = 50_000
# The height of the contour that atoms are kept for at least.
_TYPICAL_HEIGHT: Final = 1e6
# Exponents up to this are not scaled; beyond the other, K is replaced by its upper bound.
_UNSCALED_EXPONENT: Final = 200.0
_LARGEST_EXPONENT: Final = 1e12
# The logarithm of the relative accuracy of M.
_LOG_PRECISION: Final = -38.0
_DIGITS: Final = 30
# Guard bits of a sum over atoms.
_GUARD: Final = 40


class AtomListLoss(CellLoss):
    """A loss that takes the values of its atoms only, which are listed."""

    __slots__ = ()

    @property
    def supremum(self) -> float:
        return float(self.atoms().loss[-1])

    @property
    def infimum(self) -> float:
        return float(self.atoms().loss[0])

    def cells(self, edges: Array) -> Masses:
        """Return masses of 0: there is no mass between the atoms."""
        none = np.full(len(edges) - 1, -np.inf)
        return Masses(none, none.copy(), np.zeros(none.size))

    def cgf_estimate(self, c: float) -> CGFEstimate:
        return sums_over(self.atoms(), c)


def sums_over(atoms: Atoms, c: float) -> CGFEstimate:
    """Return an estimate of K and two derivatives, by sums over atoms."""
    from hockeystick.kernels import series

    shift, value, slope, curvature = series.cumulant_sums(atoms.loss.copy(), atoms.log_p.copy(), c)
    total = math.exp(-shift) + value
    slope /= total
    k = math.log1p(value) if shift == 0.0 else shift + math.log(total)
    return CGFEstimate(k, slope, max(curvature / total - slope * slope, 0.0))


class AtomicLoss(AtomListLoss, AnalyticLoss, ProfiledLoss):
    """A loss given by its atoms: finitely many, or countably many with a bounded remainder.

    ``M(z) = sum p e^(z loss)`` is a sum over atoms. Its modulus does not decay along a vertical
    contour.
    """

    __slots__ = ()

    @abstractmethod
    def nodes(self, first: int, count: int) -> tuple[list[mpf], list[mpf]]:
        """Return losses and probabilities of ``count`` atoms, by mpmath to its precision."""

    def log_omitted_moment(self, c: float) -> float:
        """Return ln of a bound of ``E_P[exp(c max(L, 0))]`` over unlisted atoms; -inf for 0."""
        return -math.inf

    def cgf_upper(self, c: float) -> float:
        """Return an upper bound of K for any c: c times the largest loss."""
        return c * self.supremum

    @property
    def infimum(self) -> float:
        """The least loss: minus the largest, unless it is known to be another."""
        return -self.supremum

    def cgf_estimate(self, c: float) -> CGFEstimate:
        """Return K and two derivatives by sums over the atoms, or from its upper bound."""
        atoms = self.atoms()
        most = float(max(abs(atoms.loss[0]), abs(atoms.loss[-1])))
        if not c * most < _LARGEST_EXPONENT:
            upper = self.cgf_upper(c)
            return CGFEstimate(upper, upper / c, 0.0)
        return sums_over(atoms, c)

    def cgf_bounds(self, c: float) -> Ball:
        """Return K by a sum over the atoms, with the remainder; else by its upper bound."""
        value = self.cgf_estimate(c).value
        rule = None
        if 0.0 < value < math.inf:
            rule = self.rule(c, 0.0, value + min(math.log(value), 0.0) + _LOG_PRECISION)
        if rule is not None:
            real, _, error = rule.line(c, 0.0, 1)
            if math.isfinite(float(real[0] + error[0])):
                return Ball(float(real[0]), float(error[0]))
        half = 0.5 * self.cgf_upper(c) * (1.0 + 8.0 * ULP)
        return Ball(half, half)

    @property
    def out_of_range(self) -> bool:
        """Whether the parameters are out of range, so that no contour integral is possible."""
        return False

    def quadrature_available(self, c: float) -> bool:
        """Return whether a sum over a moderate number of the atoms gives M."""
        value = self.cgf_estimate(c).value
        if not 0.0 < value < math.inf:
            return False
        rule = self.rule(c, _TYPICAL_HEIGHT, value + min(math.log(value), 0.0) + _LOG_PRECISION)
        return rule is not None and rule.nodes <= _MOST_NODES

    def decay(self, c: float) -> NoDecay:
        """Return that no decay of ``|M|`` along a vertical contour is known."""
        return NoDecay()

    def rule(self, c_high: float, y_high: float, log_tolerance: float) -> AtomRule | None:
        """Return the sum over the relevant atoms; None where the unlisted ones are not negligible.

        Leaving an atom out changes ``M - 1 = sum p (e^(zL) - 1 + z (e^-L - 1))`` by at most
        ``p (e^(c L+) + 1) + |z| (q + p)``, with ``L+ = max(L, 0)`` and q the atom's mass under Q.
        """
        atoms = self.atoms()
        log_modulus = math.log(math.hypot(c_high, y_high))
        log_left = self.log_omitted_moment(c_high)
        if log_left > -math.inf:
            log_left = math.log(2.0) + max(log_left, log_modulus + math.log(2.0) + LOG_LEAST_MASS)
            log_left += math.log(2.0)
        if not log_left <= log_tolerance - 1.0:
            return None
        with np.errstate(over="ignore"):
            growth = math.log(2.0) + c_high * np.maximum(atoms.loss, 0.0)
            each = np.maximum(growth, log_modulus + math.log(2.0) + np.maximum(-atoms.loss, 0.0))
            logs = atoms.log_p + each + (math.log(2.0) - log_tolerance)
            sizes = np.exp(np.minimum(logs, 700.0))
            below = int(np.searchsorted(np.cumsum(sizes), 0.2))
            above = int(np.searchsorted(np.cumsum(sizes[::-1]), 0.2))
        left = sizes.size - below - above
        if left < 1:
            return None
        return AtomRule(self, below, left, log_tolerance)


@final
@dataclass(frozen=True, slots=True)
class NoDecay:
    """No decay: ``|M(c + iy)| <= M(c)``."""

    def exponent(self, y: float) -> float:
        """Return 0."""
        return 0.0


@final
@dataclass(frozen=True, slots=True)
class AtomRule:
    """The sum over a range of atoms, with a bound of the contribution of the others to M."""

    loss: AtomicLoss
    first: int
    nodes: int
    log_error: float

    def line(self, c: float, step: float, count: int) -> ContourValues:
        """Return ``ln M`` along the line, with round-off and the atoms left out."""
        part = slice(self.first, self.first + self.nodes)
        loss, log_p, unsure = (column[part] for column in self.loss.atoms())
        with np.errstate(all="ignore"):
            peak = float((log_p + c * loss).max())
            shift = max(0.0, peak - _UNSCALED_EXPONENT)
            weight_error = np.expm1(unsure + ULP * (np.abs(log_p) + shift))
            real, imag, error = mgf_line(
                loss.copy(), log_p - shift, 4.0 * ULP * np.abs(loss), weight_error, c, step, count
            )
            error = error + np.exp(self.log_error - shift)
            return log_values(real, imag, error, shift)

    def reference_line(self, c: float, step: float, count: int) -> list[mpc]:
        """Return ``ln M`` along the line by mpmath, over the same atoms."""
        from hockeystick.precision import series

        loss, mass = self.loss.nodes(self.first, self.nodes)
        return series.cgf_line(loss, mass, c, step, count)


class FewAtoms(AtomicLoss):
    """A loss with few atoms, all listed by mpmath."""

    __slots__ = ()

    @abstractmethod
    def exact_atoms(self, perturbation: int = 0) -> AtomList:
        """Return the atoms, ascending, by mpmath to its precision; as in ``delta``."""

    def atoms(self) -> Atoms:
        return _rounded(self)

    def nodes(self, first: int, count: int) -> tuple[list[mpf], list[mpf]]:
        part = self.exact_atoms()[first : first + count]
        return [loss for loss, _ in part], [mass for _, mass in part]

    @property
    def supremum(self) -> float:
        return math.nextafter(float(self.atoms().loss[-1]), math.inf)

    def zcdp_line(self) -> ZCDPLine | None:
        """Return the line by the ends, or by chords of K where both directions are the same."""
        by_curve = of_curve(self, self.supremum) if self.opposite == self else None
        return lowest((super().zcdp_line(), by_curve))

    def delta(self, epsilon: mpf, perturbation: int = 0) -> mpf:
        """Return ``sum p (1 - e^(epsilon - loss))`` over the losses above epsilon."""
        from hockeystick.numerics.multiprecision import mp
        from hockeystick.precision.atoms import delta

        with mp.extraprec(_GUARD):
            value = delta(self.exact_atoms(perturbation), epsilon)
        return +value


@lru_cache(maxsize=64)
def _rounded(loss: FewAtoms) -> Atoms:
    """Return the atoms as floats."""
    from hockeystick.numerics.multiprecision import mp

    with working_digits(_DIGITS):
        exact_atoms = loss.exact_atoms()
        losses = [float(value) for value, _ in exact_atoms]
        logs = [float(mp.log(mass)) for _, mass in exact_atoms]
    # The logarithm of a mass next to 1 is accurate to the absolute precision of the mass.
    return read_only_atoms(losses, logs, [ULP * abs(log) + 10.0 ** (5 - _DIGITS) for log in logs])


def read_only_atoms(loss: object, log_p: object, error: object) -> Atoms:
    """Return atoms whose arrays cannot be written to."""
    columns = [np.array(column, dtype=np.float64) for column in (loss, log_p, error)]
    for column in columns:
        column.flags.writeable = False
    return Atoms(*columns)


def both(loss: PrivacyLoss) -> DominatingPair:
    """Return the pair of a loss that is the same in both directions."""
    return DominatingPair(loss, loss)
