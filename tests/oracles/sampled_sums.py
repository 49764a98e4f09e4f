"""Attacks on concrete data: noisy sums of a sample that one known record is in, or is not.

All other records contribute 0. The record's contribution has norm 1 before, and after it is gone
(add-remove, zero-out) or of the opposite sign (replace-one), so that each step shows one of two
explicit mixtures of Gaussians. Their outputs are cut into cells, which is data processing: delta
and the divergences of what is left are lower ends of the truth. Numpy and scipy alone.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

_CELLS = 2400
_REACH = 12.0
# Losses of one step are rounded down to multiples of this, so that sums of them are.
_STEP = 1e-3

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Attack:
    """One step: the sample holds the record with probability ``rate``; the noise is in norms."""

    noise: float
    rate: float
    adjacency: str

    def masses(self) -> tuple[Array, Array]:
        """The probabilities of the cells of one output, before and after."""
        reach = _REACH + 1.0 / self.noise
        edges = np.concatenate(([-np.inf], np.linspace(-reach, reach, _CELLS), [np.inf]))
        after = -1.0 if self.adjacency == "replace-one" else 0.0
        return self._mixture(edges, 1.0), self._mixture(edges, after)

    def _mixture(self, edges: Array, contribution: float) -> Array:
        """The probabilities of cells where the record contributes so much."""
        without, with_it = (_normal(edges - m / self.noise) for m in (0.0, contribution))
        return (1.0 - self.rate) * without + self.rate * with_it

    def divergence(self, order: float) -> float:
        """A lower end of the Renyi divergence of one step, the larger of both directions."""
        first, second = self.masses()
        known = (first > 1e-290) & (second > 1e-290)
        p, q = np.log(first[known]), np.log(second[known])
        both = [np.log(np.sum(np.exp(order * a + (1.0 - order) * b))) for a, b in ((p, q), (q, p))]
        return float(max(both)) / (order - 1.0) - 1e-12

    def delta(self, epsilon: float, steps: int = 1) -> float:
        """A lower end of delta of so many steps, the larger of both directions."""
        return max(_delta(self, epsilon, steps, swapped) for swapped in (False, True))


def _normal(edges: Array) -> Array:
    """The probabilities of cells under N(0, 1), by whichever tail is the smaller."""
    below, above = np.diff(norm.cdf(edges)), -np.diff(norm.sf(edges))
    return np.where(edges[1:] > 0.0, above, below)


@cache
def _losses(attack: Attack, steps: int, swapped: bool) -> tuple[Array, int]:
    """The probabilities of sums of losses rounded down, and the first one's place on the grid."""
    p, q = attack.masses()[:: -1 if swapped else 1]
    known = (p > 1e-290) & (q > 1e-290)
    places = np.floor(np.log(p[known] / q[known]) / _STEP).astype(int)
    one = np.bincount(places - places.min(), weights=p[known])
    size = 1 << int(np.ceil(np.log2(steps * one.size + 1)))
    many = np.fft.irfft(np.fft.rfft(one, size) ** steps, size)
    return many, steps * int(places.min())


def _delta(attack: Attack, epsilon: float, steps: int, swapped: bool) -> float:
    """A lower end of ``E_P[(1 - e^(epsilon - L))_+]``."""
    masses, first = _losses(attack, steps, swapped)
    losses = _STEP * (first + np.arange(masses.size))
    gained = -np.expm1(np.minimum(epsilon - losses, 0.0))
    # What the transform rounds off.
    return max(float(masses @ gained) - 1e-11, 0.0)
