"""Atomic losses: sums over atoms, with proven errors."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Self, TypeVar, final

import numpy as np

from hockeystick.kernels import long_lines, series
from hockeystick.numerics import ULP, Ball, FloatAndDecimal
from hockeystick.numerics.multiprecision import mp, mpc, mpf, working_digits
from hockeystick.precision.lines import cgf_line
from hockeystick.precision.profiles import AtomList, atomic_delta
from hockeystick.privacy_loss.bounds.moments import ZCDPLine, lowest, of_curve
from hockeystick.privacy_loss.core.base import (
    AnalyticLoss,
    Array,
    Atoms,
    CGFEstimate,
    ContourValues,
    Masses,
    ProfiledLoss,
)
from hockeystick.privacy_loss.core.cell_loss import CellLoss

# Shorter lines, and fewer terms, are summed one by one.
_SHORT: Final = 64
_FEW_TERMS: Final = 50_000
# ln of what the Taylor series leaves out at most, relative to a term.
_REST: Final = -39.0


def log_values(real: Array, imag: Array, error: Array, shift: float) -> ContourValues:
    """Return ``ln M`` for ``M - 1 = (real + i imag) exp(shift)``, known up to ``error exp(shift)``.

    What is out of range ends as an infinite error or no number.
    """
    x, y, slack = (np.ascontiguousarray(column) for column in (real, imag, error))
    return ContourValues(*series.log_values(x, y, slack, shift))


def complex_log1p(real: Array, imag: Array) -> tuple[Array, Array, Array]:
    """Return ``|v|``, ``ln|v|`` and ``arg v`` of ``v = 1 + real + i imag``."""
    modulus = np.hypot(1.0 + real, imag)
    with np.errstate(divide="ignore"):
        near_one = 0.5 * np.log1p(np.maximum(real * (2.0 + real) + imag * imag, -1.0))
        # Where 1 + real is exact and small, the square would lose it.
        log_modulus = np.where(modulus < 0.5, np.log(modulus), near_one)
    return modulus, log_modulus, np.arctan2(imag, 1.0 + real)


def mgf_line(
    loss: Array,
    log_weight: Array,
    loss_error: Array,
    weight_error: Array,
    c: float,
    step: float,
    count: int,
) -> tuple[Array, Array, Array]:
    """Return what ``kernels.series.mgf_line`` returns, faster where the line is long."""
    if count < _SHORT or count * loss.size < _FEW_TERMS:
        return series.mgf_line(loss, log_weight, loss_error, weight_error, c, step, count)
    size = 2 ** (2 * count - 1).bit_length()
    highest, spacing = step * (count - 1), 2.0 * math.pi / (size * step)
    orders = _order(0.5 * highest * spacing)
    cells, linear, bound = long_lines.gather(
        loss, log_weight, loss_error, weight_error, c, highest, spacing, orders, size
    )
    share = np.arange(count) / (count - 1.0)
    value = np.zeros(count, dtype=np.complex128)
    for row in cells[::-1]:
        value *= 1j * share
        value += np.fft.rfft(row)[:count].conj()
    y = highest * share
    real = value.real + linear[0] + c * linear[2]
    imag = value.imag + share * linear[1] + y * linear[2]
    modulus = np.hypot(c, y)
    error = bound[0] + share * (bound[1] + share * bound[2])
    error += modulus * (bound[3] + modulus * bound[4])
    error += np.minimum(bound[5] + modulus * bound[6], modulus * modulus * bound[7])
    underflow = 1e-250 if log_weight.min() < -700.0 else 0.0
    # Second-order errors, and the bound's own round-off.
    return real, imag, 1.1 * error + underflow


def tilted_line(
    loss: Array,
    log_weight: Array,
    loss_error: Array,
    weight_error: Array,
    c: float,
    step: float,
    count: int,
) -> tuple[Array, Array, Array]:
    """Return ``E[exp(z L)]``, real and imaginary part, at ``z = c + i k step``, and its error.

    It is ``E[e2(z L) + z e2(-L)]``, and ``E[1] - z E[exp(-L) - 1]``.
    """
    real, imag, error = mgf_line(loss, log_weight, loss_error, weight_error, c, step, count)
    weight = np.exp(log_weight)
    pull = weight * np.expm1(-loss)
    relative = weight_error + ULP * (16.0 + loss.size + np.abs(log_weight))
    mass, slope = float(weight.sum()), float(pull.sum())
    mass_error = float((weight * relative).sum())
    slope_error = float((np.abs(pull) * relative + weight * np.exp(-loss) * loss_error).sum())
    y = step * np.arange(count)
    error = error + mass_error + np.hypot(c, y) * slope_error
    return real + mass - c * slope, imag - y * slope, error


def equivalent_terms(nodes: int, count: int) -> int:
    """Return how many terms of a short line's sum take as long as a line of so many points."""
    return min(nodes * count, 30 * nodes + 200 * count)


def _order(farthest: float) -> int:
    """Return how many terms of the exponential series are enough up to a distance."""
    order, log_rest = 2, 2.0 * math.log(farthest) - math.log(2.0)
    while log_rest > _REST:
        order += 1
        log_rest += math.log(farthest / order)
    return order


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


_Loss = TypeVar("_Loss")
_Found = TypeVar("_Found")


def kept(most: int) -> Callable[[Callable[[_Loss], _Found]], Callable[[_Loss], _Found]]:
    """Return what keeps a method's values of so many losses."""
    return lru_cache(maxsize=most)


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
        none = np.full(len(edges) - 1, -np.inf)
        return Masses(none, none.copy(), np.zeros(none.size))

    def cgf_estimate(self, c: float) -> CGFEstimate:
        return sums_over(self.atoms(), c)


def sums_over(atoms: Atoms, c: float) -> CGFEstimate:
    """Return an estimate of K and two derivatives, by sums over atoms."""
    return CGFEstimate.of_sums(*series.cumulant_sums(atoms.loss.copy(), atoms.log_p.copy(), c))


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
        return c * self.supremum

    @property
    def infimum(self) -> float:
        """The least loss: minus the largest, unless it is known to be another."""
        return -self.supremum

    def cgf_estimate(self, c: float) -> CGFEstimate:
        atoms = self.atoms()
        most = float(max(abs(atoms.loss[0]), abs(atoms.loss[-1])))
        if not c * most < _LARGEST_EXPONENT:
            upper = self.cgf_upper(c)
            return CGFEstimate(upper, upper / c, 0.0)
        return sums_over(atoms, c)

    def cgf_bounds(self, c: float) -> Ball:
        """Return K by a sum over the atoms, with the remainder; else by its upper bound."""
        known = self.cgf_by_rule(c, self.cgf_estimate(c).value, _LOG_PRECISION)
        if known:
            return known
        half = 0.5 * self.cgf_upper(c) * (1.0 + 8.0 * ULP)
        return Ball(half, half)

    @property
    def out_of_range(self) -> bool:
        return False

    def quadrature_available(self, c: float) -> bool:
        value = self.cgf_estimate(c).value
        if not 0.0 < value < math.inf:
            return False
        rule = self.rule(c, _TYPICAL_HEIGHT, value + min(math.log(value), 0.0) + _LOG_PRECISION)
        return rule is not None and rule.nodes <= _MOST_NODES

    def decay(self, c: float) -> Self:
        return self

    def exponent(self, y: float) -> float:
        """Return 0: ``|M(c + iy)| <= M(c)``, which is all that is known on any line."""
        return 0.0

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
class AtomRule:
    """The sum over a range of atoms, with a bound of the contribution of the others to M."""

    loss: AtomicLoss
    first: int
    nodes: int
    log_error: float

    def line(self, c: float, step: float, count: int) -> ContourValues:
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
        loss, mass = self.loss.nodes(self.first, self.nodes)
        return cgf_line(loss, mass, c, step, count)


class FewAtoms(AtomicLoss):
    """A loss with few atoms, all listed by mpmath."""

    __slots__ = ()

    @abstractmethod
    def exact_atoms(self, perturbation: int = 0) -> AtomList:
        """Return the atoms, ascending, by mpmath to its precision; as in ``delta``."""

    @kept(64)
    def atoms(self) -> Atoms:
        with working_digits(_DIGITS):
            exact_atoms = self.exact_atoms()
            losses = [float(value) for value, _ in exact_atoms]
            logs = [float(mp.log(mass)) for _, mass in exact_atoms]
        # The logarithm of a mass next to 1 is accurate to the absolute precision of the mass.
        return read_only_atoms(
            losses, logs, [ULP * abs(log) + 10.0 ** (5 - _DIGITS) for log in logs]
        )

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
        with mp.extraprec(40):
            value = atomic_delta(self.exact_atoms(perturbation), epsilon)
        return +value


class ThreePointLoss(FewAtoms):
    """A loss that is ``+-epsilon``, as e^epsilon to 1, or 0: the same in both directions."""

    __slots__ = ()

    epsilon: float

    same_both_ways = True

    @property
    def supremum(self) -> float:
        return self.epsilon

    @property
    def exact_supremum(self) -> FloatAndDecimal:
        return FloatAndDecimal.of(self.epsilon)


def read_only_atoms(loss: object, log_p: object, error: object) -> Atoms:
    """Return atoms whose arrays cannot be written to."""
    columns = [np.array(column, dtype=np.float64) for column in (loss, log_p, error)]
    for column in columns:
        column.flags.writeable = False
    return Atoms(*columns)
