"""Losses of few atoms, or few runs: every combination of them, without any lattice."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from hockeystick.accountants.prv._spectrum import grown_by
from hockeystick.numerics import ULP
from hockeystick.privacy_loss.bounds.cks_factor import log_cks_factor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hockeystick.kernels.series import Array
    from hockeystick.privacy_loss import CellLoss

# No more combinations than this are worked out.
_MOST: Final = 2_000_000
# More than all that underflows together.
_UNDERFLOW: Final = 1e-290
# Atoms of less tilted mass than exp(-this) are left out, and bounded.
_LEAST: Final = 60.0


@dataclass(frozen=True)
class Combinations:
    """All sums of the losses with their tilted masses, ``exp(log_p + tilt * loss - log_total)``.

    Each mass is right within a factor ``exp(error)``, each loss within ``slack``; ``left_out``
    bounds the tilted mass of what is missing.
    """

    tilt: float
    loss: Array
    mass: Array
    log_total: float
    left_out: float
    error: float
    slack: float

    @property
    def size(self) -> int:
        """How many there are."""
        return int(self.loss.size)

    def upper(self, epsilon: float) -> float:
        """Return an upper bound of ln delta."""
        value, missing, scale = self._sum(epsilon - self.slack)
        return scale + self.error + _log(value + missing)

    def lower(self, epsilon: float) -> float:
        """Return a lower bound of ln delta; -inf for none."""
        value, _, scale = self._sum(epsilon + self.slack)
        return scale - self.error + _log(value - _UNDERFLOW)

    def _sum(self, epsilon: float) -> tuple[float, float, float]:
        """Return the sum, what may be missing, and the logarithm of what both are scaled by."""
        x = np.maximum(self.loss - epsilon, 0.0)
        value = float((np.exp(-self.tilt * x) * -np.expm1(-x) * self.mass).sum())
        missing = math.exp(log_cks_factor(self.tilt)) * self.left_out + _UNDERFLOW
        return value, missing, self.log_total - self.tilt * epsilon


class _Kind(NamedTuple):
    """The atoms of one loss that are kept, once tilted."""

    loss: Array
    log_mass: Array
    log_total: float
    left_out: float
    error: float


def combinations(
    terms: Sequence[tuple[CellLoss, int]], tilt: float, *, most: int = _MOST
) -> Combinations | None:
    """Return every combination of the atoms, None where they are too many or not all there is."""
    kinds = [(_kind(loss, tilt), count) for loss, count in terms]
    if any(kind is None for kind, _ in kinds):
        return None
    known = [(kind, count) for kind, count in kinds if kind is not None]
    sizes = [math.comb(n + kind.loss.size - 1, n) for kind, n in known]
    if math.prod(sizes) > most:
        return None
    loss, log_mass = np.zeros(1), np.zeros(1)
    for kind, count in known:
        more_loss, more_mass = _multisets(kind, count)
        loss = np.add.outer(loss, more_loss).ravel()
        log_mass = np.add.outer(log_mass, more_mass).ravel()
    runs = math.fsum(n for _, n in known)
    largest = math.fsum(n * float(np.abs(kind.loss).max()) for kind, n in known)
    logs = float(np.abs(log_mass).max()) + runs * (math.log(runs + 1.0) + 2.0)
    log_total = math.fsum(n * kind.log_total for kind, n in known)
    rounding = ULP * (16.0 * logs + 4.0 * abs(log_total) + loss.size + 4.0 * tilt * largest)
    return Combinations(
        tilt=tilt,
        loss=loss,
        mass=np.exp(log_mass),
        log_total=log_total,
        left_out=grown_by(math.fsum(n * kind.left_out for kind, n in known)) * (1.0 + 1e-9),
        error=math.fsum(n * kind.error for kind, n in known) + rounding,
        slack=ULP * (16.0 + 2.0 * runs) * largest,
    )


def _kind(loss: CellLoss, tilt: float) -> _Kind | None:
    """Return a loss's atoms, the negligible ones left out; None where there is more than atoms."""
    if loss.cells(np.array([-math.inf, math.inf])).log_p[0] > -math.inf:
        return None
    atoms = loss.atoms()
    exponent = atoms.log_p + tilt * atoms.loss
    top = float(exponent.max())
    log_total = top + math.log(float(np.exp(exponent - top).sum()))
    log_mass = exponent - log_total
    kept = log_mass > -_LEAST
    sizes = np.abs(atoms.log_p) + np.abs(tilt * atoms.loss) + abs(log_total)
    error = float((atoms.error + ULP * (8.0 * sizes + 16.0))[kept].max())
    left_out = float(np.exp(log_mass[~kept]).sum()) * 1.01
    return _Kind(atoms.loss[kept], log_mass[kept], log_total, left_out, error)


def _multisets(kind: _Kind, count: int) -> tuple[Array, Array]:
    """Return the sums of ``count`` atoms, one for each multiset, and their masses' logs."""
    from scipy.special import gammaln

    if count == 1:
        return kind.loss, kind.log_mass
    left = np.array([count], dtype=np.int64)
    loss, log_mass = np.zeros(1), np.full(1, math.lgamma(count + 1.0))
    for value, log_one in zip(kind.loss[:-1], kind.log_mass[:-1], strict=True):
        times = left + 1
        parent = np.repeat(np.arange(left.size), times)
        taken = np.arange(parent.size) - np.repeat(np.cumsum(times) - times, times)
        loss = loss[parent] + taken * value
        log_mass = log_mass[parent] + taken * log_one - gammaln(taken + 1.0)
        left = left[parent] - taken
    loss = loss + left * kind.loss[-1]
    log_mass = log_mass + left * kind.log_mass[-1] - gammaln(left + 1.0)
    return loss, log_mass


def _log(value: float) -> float:
    """Return the logarithm, -inf where there is none."""
    return math.log(value) if value > 0.0 else -math.inf
