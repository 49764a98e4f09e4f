"""Laws of noise on a line, as masses of cells, and the pairs of two shifts of one noise."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from tests.judge.outcomes import Array, Outcomes
from tests.judge.profiles import Real, Terms, listed, mp, number

CELLS = 600


class Noise(ABC):
    """A noise whose law can be shifted."""

    @abstractmethod
    def cells(self, low: float, high: float) -> Array:
        """Ends of cells for shifts between low and high; the first and last cell are unbounded."""

    @abstractmethod
    def masses(self, edges: Array, shift: float) -> Array:
        """Masses of the cells under the noise moved by a shift."""

    def dominated(self, shift: float) -> Outcomes:
        """Which cell the output is in: a shift against none."""
        edges = self.cells(0.0, shift)
        return Outcomes(self.masses(edges, shift), self.masses(edges, 0.0))


def _differences(below: Array, above: Array, middle: int) -> Array:
    """Masses of cells from both tails' probabilities, each precise where it is small."""
    left = np.diff(np.concatenate([[0.0], below]))
    right = -np.diff(np.concatenate([above, [0.0]]))
    masses = np.where(np.arange(left.size + 1) < middle, np.append(left, 0.0), 0.0)
    masses[1:] = np.where(np.arange(1, left.size + 1) >= middle, right, masses[1:])
    return np.maximum(masses, 0.0)


@dataclass(frozen=True)
class Gaussian(Noise):
    deviation: float

    def cells(self, low: float, high: float) -> Array:
        reach = 15.0 * self.deviation
        return np.linspace(low - reach, high + reach, CELLS)

    def masses(self, edges: Array, shift: float) -> Array:
        z = (edges - shift) / self.deviation
        return _differences(ndtr(z), ndtr(-z), int(np.searchsorted(z, 0.0)))


@dataclass(frozen=True)
class Laplace(Noise):
    scale: float

    def cells(self, low: float, high: float) -> Array:
        inside = np.linspace(low, high, CELLS)
        steps = self.scale * np.array([2.0, 5.0, 10.0])
        return np.concatenate([low - steps[::-1], inside, high + steps])

    def masses(self, edges: Array, shift: float) -> Array:
        z = (edges - shift) / self.scale
        tail = 0.5 * np.exp(-np.abs(z))
        below, above = np.where(z < 0, tail, 1.0 - tail), np.where(z < 0, 1.0 - tail, tail)
        return _differences(below, above, int(np.searchsorted(z, 0.0)))


@lru_cache(maxsize=256)
def integer_law(name: str, parameter: float) -> tuple[Real, ...]:
    """The masses of the integers, as far as they are above 10^-320, in 50 digits."""
    size = number(parameter)
    if name == "DiscreteGaussian":
        reach = int(39 * parameter) + 3
        weights = [mp.exp(-mp.mpf(k * k) / (2 * size**2)) for k in range(reach + 1)]
        total = weights[0] + 2 * mp.fsum(weights[1:])
        half = [one / total for one in weights]
    elif name == "DiscreteLaplace":
        reach = int(740 * parameter) + 3
        first = mp.tanh(1 / (2 * size))
        half = [first * mp.exp(-k / size) for k in range(reach + 1)]
    else:
        reach = 40 + int(40 * math.sqrt(parameter) + parameter / 8)
        half = [mp.exp(-size) * mp.besseli(k, size) for k in range(reach + 1)]
    return (*half[:0:-1], *half)


def integer_pair(name: str, parameter: float, shift: int) -> Terms:
    """An integer noise moved by a shift, against itself, on all outputs that count."""
    if name == "DiscreteLaplace":
        return _discrete_laplace(number(parameter), shift)
    law = integer_law(name, parameter)
    zeros = (mp.mpf(0),) * shift
    return listed((*zeros, *law), (*law, *zeros))


def _discrete_laplace(scale: Real, shift: int) -> Terms:
    """The losses are (2 k - shift)/scale: outputs up to 0, between, and from the shift on."""
    first = mp.tanh(1 / (2 * scale))
    tail = 1 / (1 + mp.exp(-1 / scale))
    p, q = [tail * mp.exp(-shift / scale)], [tail]
    for k in range(1, shift):
        p.append(first * mp.exp(-(shift - k) / scale))
        q.append(first * mp.exp(-k / scale))
    return listed((*p, tail), (*q, tail * mp.exp(-shift / scale)))
