"""Many levels of noise, and the few that stand for them in a sum of a smooth function over all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from hockeystick.numerics import ULP

if TYPE_CHECKING:
    from hockeystick.kernels.series import Array

# The number of nodes for the levels of one cell; a rule of n is exact up to degree 2n - 1.
_NODES: Final = 12
_DEGREES: Final = 2 * _NODES
_FEW_NODES: Final = 3
# The width of a cell in ln mu: at first, for estimates, and for uniform minorants.
_WIDEST: Final = 0.7
_ESTIMATE_STEP: Final = 0.35
_THIN: Final = 0.06
# Half of the narrowest cell.
_NARROWEST: Final = 0.02


@dataclass(frozen=True)
class Cell:
    """The levels in a range of ``x = ln mu``, and the nodes that stand for them.

    For a function that is analytic and at most B in the ellipse with foci at the ends of the range
    and half-axes adding up to ``ellipse`` times half of it, sum and rule differ by at most
    ``B error(ellipse)``: both are sums over its Chebyshev coefficients, of which the n-th is at
    most ``2 B ellipse^-n``.

    References:
        Trefethen, "Approximation Theory and Approximation Practice", theorem 8.1.
    """

    start: int
    points: Array
    centre: float
    half: float
    noise: tuple[float, ...]
    weights: Array

    @property
    def alike(self) -> bool:
        """Whether all levels are one and the same, so that the one node is exact."""
        return len(self.noise) == 1 and self.half == 0.0

    @property
    def runs(self) -> int:
        """How many levels there are in the cell."""
        return int(self.points.size)

    @cached_property
    def _gaps(self) -> Array:
        """How far the rule may be from the sum for each Chebyshev polynomial, round-off covered."""
        from hockeystick.kernels import noise_levels

        nodes = -np.log(np.array(self.noise))
        ones = np.ones(self.runs)
        all_ = noise_levels.chebyshev_sums(self.points, ones, self.centre, self.half, _DEGREES)
        few = noise_levels.chebyshev_sums(nodes, self.weights, self.centre, self.half, _DEGREES)
        # Each x is known to an ulp of 1 and four of itself, u to four more, and |T_n'| <= n^2; the
        # recurrence and the sums add their own.
        place = (1.0 + 4.0 * (abs(self.centre) + self.half)) / self.half
        grown = np.arange(_DEGREES) ** 2 * (8.0 + place) + 8.0
        return np.asarray(np.abs(all_ - few) + 2.0 * self.runs * ULP * grown)

    def error(self, ellipse: float) -> float:
        """Return by how much rule and sum differ at most, over the bound of the function."""
        falling = 2.0 * ellipse ** -np.arange(_DEGREES, dtype=np.float64)
        rest = 4.04 * self.runs * ellipse**-_DEGREES / (1.0 - 1.0 / ellipse)
        return float(falling @ self._gaps) * 1.001 + rest


class Bin(NamedTuple):
    """Levels of noise close to each other: how many, the most noise and the least."""

    runs: int
    most: float
    least: float


class Levels:
    """Levels of noise by ``x = ln mu = -ln(noise multiplier)``, ascending; equal by what they are.

    There may be millions: what is worked out from them is kept.
    """

    def __init__(self, noise_multipliers: tuple[float, ...]) -> None:
        self.noise: Array = np.sort(np.array(noise_multipliers, dtype=np.float64))[::-1]
        self.points: Array = -np.log(self.noise)
        self._cells: dict[tuple[int, int, int], Cell] = {}
        self._hash = hash(self.noise.tobytes())

    def __eq__(self, other: object) -> bool:
        """Return whether all levels are the same."""
        if self is other or not isinstance(other, Levels):
            return self is other
        return self._hash == other._hash and self.noise.tobytes() == other.noise.tobytes()

    def __hash__(self) -> int:
        """Return the hash of all levels."""
        return self._hash

    def __repr__(self) -> str:
        """Return the counts of the levels, from the largest noise to the smallest."""
        return f"<{self.runs} levels of noise from {self.most:g} to {self.least:g}>"

    @property
    def most(self) -> float:
        """The largest noise multiplier."""
        return float(self.noise[0])

    @property
    def least(self) -> float:
        """The smallest noise multiplier."""
        return float(self.noise[-1])

    @property
    def runs(self) -> int:
        """How many there are."""
        return int(self.points.size)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The cells to begin with."""
        return self._even_cells(_WIDEST, _NODES)

    @cached_property
    def estimate_nodes(self) -> tuple[tuple[float, ...], Array]:
        """Noise multipliers and weights that stand for all where nothing is proven."""
        cells = self._even_cells(_ESTIMATE_STEP, _FEW_NODES)
        noise = tuple(one for cell in cells for one in cell.noise)
        return noise, np.concatenate([cell.weights for cell in cells])

    @cached_property
    def bins(self) -> tuple[Bin, ...]:
        """Narrow bins that hold all levels."""
        from hockeystick.kernels import noise_levels

        ends = noise_levels.cell_ends(self.points, _THIN).tolist()
        return tuple(
            Bin(end - start, float(self.noise[start]), float(self.noise[end - 1]))
            for start, end in pairwise([0, *ends])
        )

    def halves(self, cell: Cell) -> tuple[Cell, ...]:
        """Return the two halves of a cell whose levels are not all alike, none of them empty."""
        middle = int(np.searchsorted(cell.points, cell.centre))
        if not 0 < middle < cell.runs:
            # Levels next to each other: those that are the first one, and the others.
            noise = self.noise[cell.start : cell.start + cell.runs]
            middle = int(np.count_nonzero(noise == noise[0]))
        ends = (cell.start, cell.start + middle, cell.start + cell.runs)
        return tuple(self._cell(low, high, _NODES) for low, high in pairwise(ends))

    def one_by_one(self, cell: Cell) -> tuple[float, ...]:
        """Return the noise multipliers of a cell's runs."""
        return tuple(self.noise[cell.start : cell.start + cell.runs].tolist())

    def _even_cells(self, width: float, nodes: int) -> tuple[Cell, ...]:
        """Return cells of the same width, at most so wide, without those that are empty."""
        low, high = float(self.points[0]), float(self.points[-1])
        count = max(1, math.ceil((high - low) / width))
        inner = np.searchsorted(self.points, np.linspace(low, high, count + 1)[1:-1])
        ends = [0, *inner.tolist(), self.runs]
        return tuple(self._cell(start, end, nodes) for start, end in pairwise(ends) if start < end)

    def _cell(self, start: int, end: int, nodes: int) -> Cell:
        """Return the cell of the levels from one place in the order to another."""
        key = (start, end, nodes)
        if key not in self._cells:
            points, first = self.points[start:end].copy(), float(self.noise[start])
            alike = first == self.noise[end - 1]
            made = _alike(start, points, first) if alike else _cell_of(start, points, nodes)
            self._cells[key] = made
        return self._cells[key]


@lru_cache(maxsize=4)
def levels_of(noise_multipliers: tuple[float, ...]) -> Levels:
    """Return levels of noise; the two directions of a plan share them."""
    return Levels(noise_multipliers)


def _alike(start: int, points: Array, noise: float) -> Cell:
    """Return the cell of levels that are all the same."""
    return Cell(start, points, float(points[0]), 0.0, (noise,), np.array([float(points.size)]))


def _cell_of(start: int, points: Array, nodes: int) -> Cell:
    """Return the cell of some levels, with Gauss's rule for them."""
    from hockeystick.kernels import noise_levels

    low, high = float(points[0]), float(points[-1])
    centre = 0.5 * (low + high)
    # A little wider than the points; a range next to nothing would only magnify round-off.
    half = max(0.5 * (high - low) * (1.0 + 1e-9), _NARROWEST)
    diagonal, beside, used = noise_levels.recurrence(points, centre, half, nodes)
    off = np.sqrt(beside[1:used])
    places, vectors = np.linalg.eigh(np.diag(diagonal[:used]) + np.diag(off, 1) + np.diag(off, -1))
    weights = points.size * vectors[0] ** 2
    noise = np.exp(-(centre + half * places))
    return Cell(start, points, centre, half, tuple(noise.tolist()), np.asarray(weights))
