"""Huber's least favourable pair: a lower bound of a pair known up to a contamination h.

Let ``P = (1 - h) P_0 + h A`` and ``Q = (1 - h) Q_0 + h B`` with any A and B. For each event S

    P(S) - e^eps Q(S) >= (1 - h) (P_0(S) - e^eps Q_0(S)) - e^eps h,

and ``delta >= 1 - e^eps``. With D_0 the profile of ``(P_0, Q_0)`` over ``x = e^eps``, the larger of
``(1 - h) D_0(x) - x h``, ``1 - x`` and 0 is the profile of a pair: under P its loss is that of P_0,
clipped to ``[low, high]``, with probability ``1 - h``, and ``low`` otherwise. ``high`` and ``low``
are where the three meet:

    (1 - h) D_0(e^high) = e^high h,     (1 - h) (D_0(e^low) - 1 + e^low) = h.

A pair with smaller profiles has smaller profiles in any composition. Lowering ``high`` or ``low``
lowers the losses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, final

import numpy as np

from hockeystick.numerics import ULP
from hockeystick.privacy_loss.core.atomic import AtomListLoss, read_only_atoms
from hockeystick.privacy_loss.core.base import Atoms
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.observed_mixture import merged

# The safety margin of the ends, which covers all round-off of the sums.
_MARGIN: Final = 1e-6


@final
@dataclass(frozen=True, slots=True)
class ContaminatedLoss(AtomListLoss):
    """The least favourable pair where a share of both distributions is unknown.

    ``known`` has atoms only, each rounded down or exact; ``share``, h, is above 0 and at most 1/2.

    References:
        Huber, "A robust version of the probability ratio test", Ann. Math. Statist. 36 (1965);
        Huber and Strassen, Ann. Statist. 1 (1973), for all levels at once.
    """

    known: CellLoss
    share: float

    def atoms(self) -> Atoms:
        """Return the clipped atoms of the known part, and the share h below the lower end."""
        return _atoms(self)


@lru_cache(maxsize=64)
def _atoms(loss: ContaminatedLoss) -> Atoms:
    """Return the clipped atoms; the share is placed a step further, which sets the spacing."""
    known, log_share = loss.known.atoms(), math.log(loss.share)
    low, high = _ends(known, log_share)
    values = np.append(low - np.diff(known.loss).min(), np.clip(known.loss, low, high))
    kept = known.log_p + math.log1p(-loss.share)
    error = known.error + ULP * (4.0 + np.abs(kept))
    log_p = np.append(log_share, kept)
    error = np.append(ULP * (4.0 + abs(log_share)), error)
    return Atoms(*read_only_atoms(*merged(Atoms(values, log_p, error))))


def _ends(known: Atoms, log_share: float) -> tuple[float, float]:
    """Return ``low`` and ``high``, each rounded down to the loss of an atom.

    ``D_0(x)`` is ``sum p (1 - x/x_i)`` over ``x_i > x``, and ``D_0(x) - 1 + x`` at most
    ``sum p (x/x_i - 1)`` over ``x_i < x``.
    """
    loss, log_p, error = known
    margin = _MARGIN + 4.0 * float(error.max())
    log_q, gaps = log_p - loss, np.log(-np.expm1(-np.diff(loss)))
    above_p = np.logaddexp.accumulate(log_p[::-1])[::-1]
    # By parts, ``D_0(x_j) / x_j = sum over i >= j of (1/x_i - 1/x_(i+1)) P(L > l_i)``.
    over = np.logaddexp.accumulate((gaps - loss[:-1] + above_p[1:])[::-1])[::-1]
    below_q = np.logaddexp.accumulate(log_q)
    under = np.logaddexp.accumulate(gaps + loss[1:] + below_q[:-1])
    less = math.log1p(-math.exp(log_share)) - margin
    high = np.append(loss[0], loss[:-1][over + less >= log_share])[-1]
    low = np.append(loss[0], loss[1:][under + margin <= log_share])[-1]
    return float(min(low, high)), float(high)
