"""Moments of a loss from the masses in its cells: what every loss with cells has for nothing."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from hockeystick.losses.base import Bounded, CellLoss, Cumulants

if TYPE_CHECKING:
    from hockeystick._kernels.series import Array

_ULP: Final = 2.0**-52
_CELLS: Final = 2**14
# What is less likely than exp of this is beyond the grid.
_LEAST: Final = -760.0
# Losses that go no further than this are covered whole.
_NEAR: Final = 20.0
# Losses at which the reach of one is probed.
_NEAREST: Final = 1e-9
_FARTHEST: Final = 1e9
_PROBES: Final = 2048


class _Grid(NamedTuple):
    """All of a loss: its atoms, and the cells that the rest lies in."""

    low: Array
    high: Array
    log_p: Array
    log_q: Array
    error: Array


def reach(loss: CellLoss, log_least: float) -> tuple[float, float]:
    """Return losses below which Q, and above which P, has hardly more than ``exp(log_least)``."""
    import numpy as np

    if max(-loss.infimum, loss.supremum) <= _NEAR:
        return loss.infimum, loss.supremum
    atoms = loss.atoms()
    sizes = np.geomspace(_NEAREST, _FARTHEST, _PROBES)
    edges = np.concatenate((-sizes[::-1], sizes))
    masses = loss.cells(np.concatenate(([-math.inf], edges, [math.inf])))
    log_q = np.concatenate((atoms.log_p - atoms.loss, masses.log_q[:-1]))
    log_p = np.concatenate((atoms.log_p, masses.log_p[1:]))
    # A cell counts by the edge that is farther out.
    lowest = np.concatenate((atoms.loss, [-math.inf], edges[:-1]))
    highest = np.concatenate((atoms.loss, edges[1:], [math.inf]))
    low = _outermost(-lowest, log_q, log_least)
    high = _outermost(highest, log_p, log_least)
    return max(-low, loss.infimum, -_FARTHEST), min(high, loss.supremum, _FARTHEST)


def _outermost(place: Array, log_mass: Array, log_least: float) -> float:
    """Return the outermost place at which the mass from there on is more than the least."""
    import numpy as np

    order = np.argsort(-place, kind="stable")
    beyond = np.logaddexp.accumulate(log_mass[order])
    enough = np.flatnonzero(beyond > log_least)
    return float(place[order][enough[0]]) if enough.size else 0.0


@lru_cache(maxsize=64)
def _grid(loss: CellLoss) -> _Grid:
    """Return the loss on equal cells, as far as it has mass."""
    import numpy as np

    low, high = reach(loss, _LEAST)
    atoms = loss.atoms()
    edges = np.unique(np.linspace(low, high, _CELLS + 1))
    # At an end of the loss, what rounding would leave beyond it belongs inside.
    first = [-math.inf] if low <= loss.infimum else [-math.inf, low]
    last = [math.inf] if high >= loss.supremum else [high, math.inf]
    given = np.concatenate((first, edges[1:-1], last))
    ends = given.copy()
    ends[0], ends[-1] = loss.infimum, loss.supremum
    masses = loss.cells(given)
    kept = masses.log_p > -math.inf
    return _Grid(
        np.concatenate((atoms.loss, ends[:-1][kept] - loss.displacement)),
        np.concatenate((atoms.loss, ends[1:][kept] + loss.displacement)),
        np.concatenate((atoms.log_p, masses.log_p[kept])),
        np.concatenate((atoms.log_p - atoms.loss, masses.log_q[kept])),
        np.concatenate((atoms.error, masses.error[kept])),
    )


def cumulants(loss: CellLoss, c: float) -> Cumulants:
    """Return K and two derivatives of the loss with each cell merged; for steering."""
    import numpy as np

    grid = _grid(loss)
    mean = grid.log_p - grid.log_q
    exponent = grid.log_p + c * mean
    top = float(exponent.max())
    weight = np.exp(exponent - top)
    total = float(weight.sum())
    slope = float(weight @ mean) / total
    curvature = float(weight @ (mean - slope) ** 2) / total
    return Cumulants(top + math.log(total), slope, curvature)


def log_mgf(loss: CellLoss, c: float, log_twice: float = math.inf) -> Bounded:
    """Return K between its ends: cells merged (Jensen), and cells spread to their edges.

    ``e^K = E_Q[R^(1+c)]`` for the likelihood ratio R, and ``R^(1+c)`` is convex: within a cell
    its mean is at least that of the mean, and at most that of the edges, with R's mean kept. In a
    cell without an upper edge it is at most ``sqrt(p e^K(2c))``, of which ``log_twice`` bounds the
    exponent (Cauchy and Schwarz).
    """
    import numpy as np

    grid = _grid(loss)
    open_end = ~np.isfinite(grid.high)
    if not bool((grid.error < 1.0).all()) or (bool(open_end.any()) and log_twice == math.inf):
        return Bounded(0.5 * cumulants(loss, c).value, math.inf)
    low = np.maximum(grid.low, -_FARTHEST)
    end = np.where(open_end, low, grid.high)
    mean = np.maximum(grid.log_p - grid.log_q, low)
    mean = np.where(open_end, mean, np.minimum(mean, end))
    sizes = _ULP * (8.0 * (1.0 + c) * (np.abs(grid.log_p) + np.abs(grid.log_q)) + 16.0)
    lower = grid.log_p + c * mean - (1.0 + 2.0 * c) * grid.error - sizes
    # Of the mass under P, the share that goes to the upper edge.
    width = end - low
    share = np.ones_like(width)
    np.divide(np.expm1(low - mean), np.expm1(-width), out=share, where=width > 0.0)
    unsure = 2.0 * grid.error + 4.0 * _ULP * (np.abs(grid.log_p) + np.abs(grid.log_q))
    room = np.maximum(-np.expm1(-width), 1e-300)
    share = np.clip(share + unsure / room, 0.0, 1.0)
    upper = grid.log_p + np.logaddexp(
        c * low + np.log1p(-np.minimum(share, 1.0 - 2.0**-53)),
        c * end + np.log(np.maximum(share, 1e-300)),
    )
    upper = np.where(open_end, 0.5 * (grid.log_p + log_twice), upper)
    upper = upper + grid.error + sizes + 4.0 * _ULP * np.abs(upper)
    rounding = _ULP * (lower.size + 16.0)
    low_end = max(_log_sum(lower) - rounding, 0.0)
    high_end = max(_log_sum(upper) + rounding, 0.0)
    return Bounded(0.5 * (low_end + high_end), 0.5 * (high_end - low_end) * (1.0 + 4.0 * _ULP))


def _log_sum(logs: Array) -> float:
    """Return the logarithm of the sum of exponentials."""
    import numpy as np

    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))
