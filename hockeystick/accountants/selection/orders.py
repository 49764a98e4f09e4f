"""The order of the outcomes of one run by which the best of several runs costs most.

A run has distributions P and Q of its outputs, which are ranked from the worst up; u and v are the
shares of P and of Q up to some rank, ``phi(x) = E[x^K]``. The best of K runs is in a set S of
outputs with probability ``integral over S of d phi(u)``, and with ``psi = phi(u) - a phi(v)``

    H_a(best under P || best under Q) = integral of (d psi)_+,

what psi rises, in all, while (u, v) goes from (0, 0) to (1, 1): over all orders, the worst case.

Theorem. Let (P, Q) be finite, outcomes of equal ratio joined, outputs any post-processing of them.
Then the worst order takes outputs of ratios in an interval that grows to either side, from one
threshold on: those above the threshold, ascending, make up S, and those below it, descending, the
rest. So with ``W(l, r) = max(W(l - dl, r), W(l, r + dr) + psi(l, r + dr) - psi(l, r))``, psi(l, r)
at the shares of outcomes between l and r, the largest hockey-stick divergence is ``max_t W(t, t)``.

Proof. Whoever sees which outcome an output was made of sees more, so that outputs are pieces of
outcomes. Take a finite sequence of blocks, in turn outside and inside of S: N_1, S_1, .., N_k, S_k,
N_(k+1), and how much of each outcome is in which. The rise is a continuous function on a compact,
convex set, so that some division is the best one; take one with the fewest blocks that are not
empty. Its derivative by what an outcome (p, q) has in one block is ``p s - a q s'``, where s adds
up ``phi'(u)`` at the ends of blocks inside S from there on, less that at their beginnings, and s'
is the same of v. As phi' rises, s and s' are nondecreasing along
``N_(k+1), N_k, .., N_1, S_1, .., S_k``, and neighbours have equal s and equal s' only where the
block between them is empty. Each outcome lies in blocks where its derivative is largest, so that
one of a larger ratio p/q never lies in an earlier block of this list than one of a smaller ratio:
that is the order above. Any order is a limit of blocks.

A ranked mechanism can be any, so that this is the worst one's divergence and not just a bound.

On a grid W is taken over whole outcomes only, and what that leaves out is added.

- Parts of outcomes above the threshold. With ``U = W + psi`` the conditions on a bound W are that U
  falls with r, and W with what is taken to the left. Between two columns U is interpolated
  linearly; the derivative of psi by the outcome (p, q) to the left is a difference of functions
  that are convex in the share of the outcome (p', q') to the right, so that it suffices that W
  falls by ``(p p'^2 phi3(u) - a q q'^2 phi3(v)) / 8`` across the outcome to the left, phi3 the
  third derivative, where that is positive.
- Parts of outcomes below it. What psi rises by across (p', q'), as a function of the share of
  (p, q) already taken, is at most ``(a q^2 q' phi3(v) - p^2 p' phi3(u)) / 8`` above its chord; and
  sums of piecewise linear functions are largest, over monotone sequences, on the grid.
- Where the threshold cuts an outcome (p, q), the whole is a difference of two convex functions of
  the share, at most ``(p^2 phi2(u) - a q^2 phi2(v)) / 8`` above the larger of both ends, or the
  opposite of it where the part above the threshold comes first.

All derivatives of phi rise, so that they are taken at the larger place where they add, and at the
smaller one where they subtract.

Numbers of runs by their generating functions, at w, the share of outputs that rank higher.

With ``phi(x) = E[x^K]`` and ``u = 1 - w``, the best of K runs ranks between two places with
probability ``phi(u_1) - phi(u_0)``. It is taken relative to itself, however small: places are given
by w, which next to the top is small where u is nearly 1.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hockeystick.accountants.selection.pairs import FinitePair
from hockeystick.mechanisms.selection.tuning import (
    Binomial,
    Poisson,
    RunCount,
    TruncatedNegativeBinomial,
)
from hockeystick.numerics import ULP

Array: TypeAlias = NDArray[np.float64]

# More than the roundings of one value, in units of its condition.
_ROUNDINGS: Final = 64.0 * ULP
# Powers beyond this exponent are not handled.
_LARGEST_EXPONENT: Final = 600.0
# Nor are shares whose errors grow by more than this: noise of 1e-6 stays below 1.
_LARGEST_CONDITION: Final = 1e5


class Generating(ABC):
    """Increments of ``phi``, and its second and third derivative, all nonincreasing in w.

    ``condition`` is by how much, relatively, an increment or a derivative moves at most, in units
    of what w, its increment and the parameters move by, relatively. All values have a relative
    error below ``_ROUNDINGS`` times it.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def mean(self) -> float:
        """E[K], rounded up: the largest derivative."""

    @property
    @abstractmethod
    def steepness(self) -> float:
        """The second derivative over the first one at the top, rounded."""

    @property
    @abstractmethod
    def condition(self) -> float:
        """By how much relative errors grow."""

    @property
    def slack(self) -> float:
        """A bound of the relative error of a value at exact places."""
        return _ROUNDINGS * self.condition

    @abstractmethod
    def gain(self, above: Array, share: Array) -> Array:
        """Return the chance of a best run among a share of the outputs, below those above."""

    @abstractmethod
    def third(self, above: Array) -> Array:
        """Return the third derivative."""

    @abstractmethod
    def log_slope(self, above: Array) -> Array:
        """Return the logarithm of the first derivative over that at the top."""

    @abstractmethod
    def curvature(self, above: Array) -> Array:
        """Return the second derivative."""


@dataclass(frozen=True, slots=True)
class _NegativeBinomial(Generating):
    """With ``z = gamma + (1-gamma) w``: ``phi = (z^-eta - 1) / (gamma^-eta - 1)``, K >= 1.

    At eta = 0 it is ``ln(1/z) / ln(1/gamma)``; the derivative is ``E[K] (gamma/z)^(1+eta)``.
    """

    eta: float
    gamma: float

    @property
    def mean(self) -> float:
        known = TruncatedNegativeBinomial(self.eta, self.gamma).expected
        return known * (1.0 + self.slack)

    @property
    def steepness(self) -> float:
        return (1.0 + self.eta) * (1.0 - self.gamma) / self.gamma

    @property
    def condition(self) -> float:
        """``z`` is a sum of positive numbers, to the power -(1+eta) or so; 1 - gamma is rounded."""
        return (4.0 + 2.0 * abs(self.eta)) * (1.0 - math.log(self.gamma)) / (1.0 - self.gamma)

    def gain(self, above: Array, share: Array) -> Array:
        """Return ``(z_0^-eta - z_1^-eta) / (gamma^-eta - 1)``, ``z_1`` the lower place's."""
        least = self._z(above)
        ratio = np.log1p((1.0 - self.gamma) * share / least)
        log_gamma = -math.log(self.gamma)
        if self.eta == 0.0:
            return np.asarray(ratio / log_gamma)
        power = self.eta * (np.log(least) + ratio)
        rise = np.expm1(self.eta * ratio) / math.expm1(self.eta * log_gamma)
        return np.asarray(np.exp(-power) * rise)

    def log_slope(self, above: Array) -> Array:
        share = (1.0 - self.gamma) / self.gamma * above
        return np.asarray(-(1.0 + self.eta) * np.log1p(share))

    def third(self, above: Array) -> Array:
        """Return ``E[K] (1+eta) (2+eta) ((1-gamma)/gamma)^2 (gamma / z)^(3+eta)``."""
        scale = self.mean * self.steepness * (2.0 + self.eta) * (1.0 - self.gamma) / self.gamma
        return np.asarray(scale * (self.gamma / self._z(above)) ** (3.0 + self.eta))

    def curvature(self, above: Array) -> Array:
        """Return ``E[K] (1+eta) (1-gamma)/gamma (gamma / z)^(2+eta)``."""
        power = (self.gamma / self._z(above)) ** (2.0 + self.eta)
        return np.asarray(self.mean * self.steepness * power)

    def _z(self, above: Array) -> Array:
        return self.gamma + (1.0 - self.gamma) * above


@dataclass(frozen=True, slots=True)
class _Poisson(Generating):
    """``phi = e^(-m w)``."""

    rate: float

    @property
    def mean(self) -> float:
        return self.rate * (1.0 + 4.0 * ULP)

    @property
    def steepness(self) -> float:
        return self.rate

    @property
    def condition(self) -> float:
        return 4.0 + 2.0 * self.rate

    def gain(self, above: Array, share: Array) -> Array:
        return np.asarray(np.exp(-self.rate * above) * -np.expm1(-self.rate * share))

    def log_slope(self, above: Array) -> Array:
        return -self.rate * above

    def third(self, above: Array) -> Array:
        return np.asarray(self.rate**2 * self.mean * np.exp(-self.rate * above))

    def curvature(self, above: Array) -> Array:
        return np.asarray(self.rate * self.mean * np.exp(-self.rate * above))


@dataclass(frozen=True, slots=True)
class _Binomial(Generating):
    """``phi = (1 - p w)^n``."""

    trials: int
    probability: float

    @property
    def mean(self) -> float:
        return self.trials * self.probability * (1.0 + 8.0 * ULP)

    @property
    def steepness(self) -> float:
        """``(n - 1) p``, and of one trial, whose second derivative is 0, a number above it."""
        return max(self.trials - 1.0, 0.5) * self.probability

    @property
    def condition(self) -> float:
        """``ln(1 - p w)`` moves by at most ``p / (1-p)``, and is multiplied by n.

        With A and B the values of ``1 - p w`` at both ends, A the larger, ``A^n - B^n`` moves with
        the place by ``(A^(n-1) - B^(n-1)) / (A^n - B^n) <= 1/A``, and is concave in the share.
        """
        return 6.0 + 2.0 * self.trials * self.probability / (1.0 - self.probability)

    def gain(self, above: Array, share: Array) -> Array:
        """Return ``A^n (1 - (1 - p d / A)^n)`` with ``A = 1 - p w_0``; p d is at most p A."""
        log_least = np.log1p(-self.probability * above)
        part = np.minimum(self.probability * share / np.exp(log_least), self.probability)
        fall = -np.expm1(self.trials * np.log1p(-part))
        return np.asarray(np.exp(self.trials * log_least) * fall)

    def log_slope(self, above: Array) -> Array:
        return np.asarray((self.trials - 1.0) * np.log1p(-self.probability * above))

    def third(self, above: Array) -> Array:
        n, p = self.trials, self.probability
        return np.asarray(n * (n - 1.0) * (n - 2.0) * p**3 * self._power(above, n - 3.0))

    def curvature(self, above: Array) -> Array:
        n, p = self.trials, self.probability
        return np.asarray(n * (n - 1.0) * p**2 * self._power(above, n - 2.0))

    def _power(self, above: Array, exponent: float) -> Array:
        return np.asarray(np.exp(exponent * np.log1p(-self.probability * above)))


def generating(count: RunCount) -> Generating | None:
    """Return the generating function of a number of runs; None where floats do not hold it."""
    if isinstance(count, TruncatedNegativeBinomial):
        held = abs(count.eta * math.log(count.gamma)) <= _LARGEST_EXPONENT
        return _NegativeBinomial(count.eta, count.gamma) if held else None
    if isinstance(count, Poisson):
        return _Poisson(count.mean) if count.mean <= _LARGEST_EXPONENT else None
    if not isinstance(count, Binomial):
        return None
    found = _Binomial(count.trials, count.probability)
    exponent = -count.trials * math.log1p(-count.probability)
    held = exponent <= _LARGEST_EXPONENT and found.condition <= _LARGEST_CONDITION
    return found if held else None


_TINY: Final = 1e-290


class Ranked:
    """The best of several runs of a finite pair, ranked in the worst order.

    Matrices have a row for each left end l of an interval of outcomes, a column for each right end.
    Those of cells have a row for each outcome to the left, a column for each one to the right.
    """

    def __init__(self, pair: FinitePair, count: Generating) -> None:
        self._pair = pair
        self._count = count
        self._slack = count.slack + count.condition * 2.0 * pair.noise + 16.0 * ULP

    def upper(self, growth: float) -> float:
        """Return an upper bound of the largest divergence at ``a = growth``."""
        if math.log(growth) >= self.supremum:
            return 0.0
        own, other = self._rises
        rise = own * (1.0 + self._slack) - growth * (1.0 - self._slack) * other
        to_right, to_left = self._cuts(growth)
        beside = np.zeros_like(rise)
        beside[:-1] = to_left
        beside[1:] = np.maximum(beside[1:], to_left)
        found = self._with_cut_threshold(rise + beside, to_right, growth)
        return min(max(float(np.max(found + self._rounding(growth))), 0.0), 1.0)

    @cached_property
    def supremum(self) -> float:
        """An upper bound of the largest loss: the largest ratio below the smallest ones.

        ``ln p/q + ln phi'(u) - ln phi'(v)`` is largest with the outcomes of the smallest ratios
        above; as their share grows along one outcome it is monotone.
        """
        if self._pair.q[-1] == 0.0:
            return math.inf
        own, other = (self._count.log_slope(below) for below in self._pair.below)
        ratio = math.log(self._pair.p[-1] / self._pair.q[-1])
        return (ratio + float(np.max(own - other))) * (1.0 + 8.0 * ULP) + 8.0 * self._slack

    def lower(self, growth: float) -> float:
        """Return a lower bound of the largest divergence at ``a = growth``."""
        own, other = self._rises
        rise = own * (1.0 - self._slack) - growth * (1.0 + self._slack) * other
        best = _best(rise, np.zeros_like(self._levels[0][:-1]))
        found = np.diagonal(best)[:-1] - self._rounding(growth)
        return max(float(np.max(found)), 0.0)

    @cached_property
    def _levels(self) -> tuple[Array, Array]:
        """The shares of outputs, under P and under Q, that rank above each interval."""
        sides = zip(self._pair.below, self._pair.above, strict=True)
        first, second = (np.minimum(np.add.outer(*side), 1.0) for side in sides)
        return first, second

    @cached_property
    def _rises(self) -> tuple[Array, Array]:
        """What ``phi(u)`` and ``phi(v)`` rise by where the outcome to the right is taken."""
        first, second = (
            np.triu(self._count.gain(level[:, 1:], masses[np.newaxis, :]))
            for level, masses in zip(self._levels, self._masses, strict=True)
        )
        return first, second

    @cached_property
    def _curvatures(self) -> tuple[Array, Array]:
        first, second = (self._count.curvature(level) for level in self._levels)
        return first, second

    @cached_property
    def _thirds(self) -> tuple[Array, Array]:
        first, second = (self._count.third(level) for level in self._levels)
        return first, second

    @property
    def _masses(self) -> tuple[Array, Array]:
        return self._pair.p, self._pair.q

    @property
    def _eighths(self) -> tuple[float, float]:
        """An eighth, rounded up and down by more than what is multiplied by it may be off."""
        return 0.125 * (1.0 + 2.0 * self._slack), 0.125 * (1.0 - 2.0 * self._slack)

    def _cuts(self, growth: float) -> tuple[Array, Array]:
        """Return, for each cell, what cuts of the outcome to the right and to the left may add."""
        own, other = self._thirds
        p, q = self._masses
        more, less = self._eighths
        right = more * np.multiply.outer(p, p * p) * own[:-1, 1:]
        right -= less * growth * np.multiply.outer(q, q * q) * other[1:, :-1]
        left = more * growth * np.multiply.outer(q * q, q) * other[:-1, 1:]
        left -= less * np.multiply.outer(p * p, p) * own[1:, :-1]
        return np.maximum(np.triu(right), 0.0), np.maximum(np.triu(left), 0.0)

    def _bends(self, growth: float) -> tuple[Array, Array]:
        """Return by how much a cut threshold may lie above both of its ends.

        The first is for each left end, with the part below the threshold taken first; the second
        the largest with the part above it taken first.
        """
        squares = [mass * mass for mass in self._masses]
        own, other = self._curvatures
        more, less = self._eighths
        first = more * squares[0] * own[:-1, 1:] - less * growth * squares[1] * other[:-1, :-1]
        second = more * growth * squares[1][:, np.newaxis] * other[:-1, 1:]
        second -= less * squares[0][:, np.newaxis] * own[1:, 1:]
        return np.maximum(np.triu(first), 0.0), np.max(np.maximum(np.triu(second), 0.0), axis=1)

    def _with_cut_threshold(self, rise: Array, to_right: Array, growth: float) -> Array:
        """Return, for each outcome that the threshold may cut, a bound of the best rise."""
        crossing = np.pad(to_right, ((0, 0), (0, 1)))
        crossing[:, 1:] = np.maximum(crossing[:, 1:], to_right)
        best = _best(rise, crossing)
        # The threshold next to an outcome on its left, which is taken from l on.
        behind = np.cumsum(to_right[::-1], axis=0)[::-1]
        whole = best[:-1, 1:] + rise[:-1] + behind
        whole = np.where(np.triu(np.ones_like(whole, dtype=bool)), whole, -np.inf)
        # The same on its right, taken from l on or from farther left; 0 with nothing above it.
        none = np.pad(np.maximum.accumulate(whole, axis=0)[:, 1:], ((0, 0), (0, 1)))
        below, above = (np.max(one, axis=0) for one in (whole, none))
        first, second = self._bends(growth)
        part_below_first = np.max(np.maximum(whole, none) + first, axis=0)
        return np.asarray(np.maximum(part_below_first, np.maximum(below, above) + second))

    def _rounding(self, growth: float) -> Array:
        """Return a bound of the rounding of the sums above each threshold."""
        n, mean = self._pair.p.size, self._count.mean
        own, other = (np.minimum(mean * above[:-1], 1.0) for above in self._pair.above)
        return 32.0 * (n + 4.0) * ULP * (own + growth * other) + _TINY


def _best(rise: Array, crossing: Array) -> Array:
    """Return what psi rises by at most from each interval on.

    ``crossing`` is what taking the outcome to the left adds, for each outcome and right end. Along
    a row, ``best(r) = done(r) + max over s >= r of (above(s) - done(s))``, with ``above`` the row
    of the next outcome to the left, crossed, and ``done`` the sums from the right.
    """
    done = np.pad(np.cumsum(rise[:, ::-1], axis=1)[:, ::-1], ((0, 0), (0, 1)))
    best = np.empty_like(done)
    above = np.full(done.shape[1], -np.inf)
    above[-1] = 0.0
    for row in range(done.shape[0]):
        if row:
            above = best[row - 1] + crossing[row - 1]
        best[row] = done[row] + np.maximum.accumulate((above - done[row])[::-1])[::-1]
    return best
