"""The two tests of an audit in one run: may this many guesses have been right?

m canaries are each included with probability 1/2, independently. After the run the auditor guesses
for r of them whether they were, and v of the guesses are right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from hockeystick.audit._binomial import SPARE, Array, at_least

# Of a family of trade-off functions, one for each parameter in an array: the least rate x >= 0
# with 1 - f(x) >= r, or less than it.
Inverse: TypeAlias = Callable[[Array, Array], Array]

_PARTS: Final = 64
_ROUNDS: Final = 6
_LARGEST: Final = 64.0
_WIDTH: Final = 1e-8
_LEAST_MASS: Final = 1e-290


@dataclass(frozen=True, slots=True)
class Guesses:
    """How many canaries there were, how many were guessed, and how many guesses were right."""

    canaries: int
    made: int
    correct: int


def epsilon_by_binomial(guesses: Guesses, delta: float, alpha: float) -> float:
    """Return the end of the epsilons from 0 on that are all rejected at a level.

    With ``W ~ Bin(r, e^eps / (e^eps + 1))``, (eps, delta)-DP has

        P[V >= v] <= P[W >= v] (1 + m delta P[W < v] / (v P[W = v])),

    which some such mechanism attains, up to 1: docs/theory/audit. The right side is bounded over
    cells of epsilons.
    """
    low, width = 0.0, 1.0
    while width > _WIDTH and low < _LARGEST:
        edges = low + width * np.arange(_PARTS + 1, dtype=np.float64)
        kept = _tail_bound(guesses, delta, edges) <= alpha
        failing = np.flatnonzero(np.logical_not(kept))
        low = float(edges[failing[0] if failing.size else -1])
        width = width / _PARTS if failing.size else width
    return low


def _tail_bound(guesses: Guesses, delta: float, edges: Array) -> Array:
    """Return an upper end of the right side in each cell between edges.

    In epsilon, ``P[W >= v]`` and its ratio to ``P[W = v]`` rise, and ``P[W < v]`` falls.
    """
    chance = 1.0 / (1.0 + np.exp(-edges))
    v, r = guesses.correct, guesses.made
    tail = at_least(np.array(float(v)), r, chance)
    upper = tail[1:] * (1.0 + SPARE)
    if delta == 0.0 or v < 1:
        return np.asarray(upper)
    below = 1.0 - tail[:-1] * (1.0 - SPARE)
    failures = guesses.canaries * delta / v
    return np.asarray(upper + failures * _ratio(v, r, edges[1:], upper) * below)


def _ratio(v: int, r: int, edges: Array, tail: Array) -> Array:
    """Return an upper end of ``P[W >= v] / P[W = v]``, also where the mass is no float.

    Each term of the sum is at most ``x = e^eps (r - v) / (v + 1)`` times the one before.
    """
    from scipy.stats import binom

    mass = np.asarray(binom.pmf(v, r, 1.0 / (1.0 + np.exp(-edges))), dtype=np.float64)
    divided = tail / np.maximum(mass * (1.0 - SPARE), _LEAST_MASS)
    x = np.exp(edges) * (r - v) / (v + 1.0) * (1.0 + SPARE)
    geometric = np.where(x < 1.0, 1.0 / np.maximum(1.0 - x, SPARE), np.inf) * (1.0 + SPARE)
    return np.minimum(np.where(mass > _LEAST_MASS, divided, np.inf), geometric)


def rejected(guesses: Guesses, alpha: float, inverse: Inverse, parameters: Array) -> Array:
    """Return for which parameters so many right guesses have a probability below a level.

    With ``p_j = P[V = j]`` and ``T = {j, j + 1, ...}``, f-DP for every canary, averaged, has

        sum over i >= j of i p_i / m <= fbar(sum over i >= j - 1 of (r - i) p_i / m),  fbar = 1 - f,

    as the outputs that make a guess right, j in all, make it wrong and leave j - 1 where the canary
    is flipped. Starting with mass alpha at v, the least mass that this asks for below v, step by
    step, must not exceed 1 in all.

    Mahloujifar, Melis and Chaudhuri, ICML 2025 (arXiv 2410.22235), algorithm 3; the least masses
    are shown to be least in docs/theory/audit.
    """
    m, made = float(guesses.canaries), guesses.made
    right = np.full(parameters.shape, alpha * guesses.correct / m)
    wrong = np.full(parameters.shape, alpha * (made - guesses.correct) / m)
    for i in range(guesses.correct - 1, -1, -1):
        needed = inverse(np.minimum(right, 1.0), parameters) * (1.0 - SPARE)
        new = np.maximum(wrong, needed)
        if bool((new == wrong).all()):
            break
        right = right + i / (made - i) * (new - wrong)
        wrong = new
    return np.asarray(right + wrong > made / m * (1.0 + SPARE))


def largest_rejected(guesses: Guesses, alpha: float, inverse: Inverse) -> float:
    """Return the end of the parameters from 0 on that are rejected: the larger, the less so."""
    low, width = 0.0, _LARGEST / _PARTS
    for _ in range(_ROUNDS):
        grid = low + width * np.arange(1, _PARTS + 1, dtype=np.float64)
        kept = np.flatnonzero(np.logical_not(rejected(guesses, alpha, inverse, grid)))
        steps = int(kept[0]) if kept.size else _PARTS
        low, width = low + width * steps, width / _PARTS
    if low > 0.0 or bool(rejected(guesses, alpha, inverse, np.zeros(1))[0]):
        return low
    return 0.0


def of_gaussians(rates: Array, mu: Array) -> Array:
    """Return ``Phi(PhiInv(r) - mu)``, the inverse for mu-GDP."""
    from scipy.special import ndtr, ndtri

    return np.asarray(ndtr(np.asarray(ndtri(rates)) - mu))


def of_approx(delta: float) -> Inverse:
    """Return the inverse for (epsilon, delta)-DP, of two lines."""

    def inverse(rates: Array, epsilon: Array) -> Array:
        low, high = _two_lines(rates, delta, np.exp(-epsilon), np.exp(epsilon))
        return np.maximum(np.maximum(low, high), 0.0)

    return inverse


def of_lines(epsilons: Array, deltas: Array) -> Inverse:
    """Return the inverse for what is (epsilon, delta)-DP for all of several pairs."""
    shrink, grow = np.exp(-epsilons), np.exp(np.minimum(epsilons, 700.0))

    def inverse(rates: Array, parameters: Array) -> Array:
        r = rates[..., np.newaxis]
        low, high = _two_lines(r, deltas, shrink, grow)
        return np.asarray(np.maximum(np.maximum(low, high).max(axis=-1), 0.0))

    return inverse


def _two_lines(
    rates: Array, delta: Array | float, shrink: Array, grow: Array
) -> tuple[Array, Array]:
    """Return both lines of (epsilon, delta)-DP, less their round-off."""
    low = (rates * (1.0 - 2.0**-50) - delta) * shrink
    return low, 1.0 - delta - grow * (1.0 - rates) - 2.0**-50 * (1.0 + grow)
