"""Privacy profiles in closed form, and where they fall to a delta, to mpmath's precision."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, final

from hockeystick.numerics import ULP, decimal
from hockeystick.numerics.roots import falling_root
from hockeystick.numerics.working_precision import working_digits
from hockeystick.privacy_loss import GaussianLoss, ProfileLoss, RandomizedResponsePairLoss

if TYPE_CHECKING:
    from mpmath import mpf

MOST_ATOMS: Final = 20_000
# Digits that a sum over atoms may lose where epsilon lies next to one of them.
_SPARE_DIGITS: Final = 40
# The largest epsilon that a profile is searched up to.
_LARGEST_EPSILON: Final = 1e15

Function: TypeAlias = Callable[["mpf", int], "mpf"]


class ExactProfile(ABC):
    """delta(epsilon) and its inverse, to mpmath's current precision.

    ``perturbation`` = 1 or -1 moves each parameter by one unit in the last place to the less or the
    more private side, to cover every reading of it.
    """

    @abstractmethod
    def delta(self, epsilon: mpf, perturbation: int) -> mpf:
        """Return delta at an ``epsilon >= 0``."""

    @abstractmethod
    def epsilon(self, delta: mpf, perturbation: int) -> mpf:
        """Return the least ``epsilon >= 0`` with at most this ``delta > 0``."""


@final
@dataclass(frozen=True)
class SmoothProfile(ExactProfile):
    """A profile given by a smooth function."""

    function: Function

    def delta(self, epsilon: mpf, perturbation: int) -> mpf:
        return self.function(epsilon, perturbation)

    def epsilon(self, delta: mpf, perturbation: int) -> mpf:
        return falling_root(lambda epsilon: self.function(epsilon, perturbation), delta)


@final
@dataclass(frozen=True)
class BracketedProfile(ExactProfile):
    """A profile known by proven ends at floats; a perturbation reads the lower or the upper one."""

    loss: ProfileLoss

    def delta(self, epsilon: mpf, perturbation: int) -> mpf:
        return self.loss.delta(epsilon, perturbation)

    def epsilon(self, delta: mpf, perturbation: int) -> mpf:
        """Return the epsilon at which the end falls to delta, by bisection, rounded to its side."""
        from hockeystick.numerics.multiprecision import mp

        if self.delta(mp.zero, perturbation) <= delta:
            return mp.zero
        low, high = 0.0, 1.0
        while self.delta(high, perturbation) > delta:
            if high > _LARGEST_EPSILON:
                return mp.mpf(high) if perturbation < 0 else mp.inf
            low, high = high, 2.0 * high
        while high - low > 2.0 * math.ulp(high):
            middle = 0.5 * (low + high)
            low, high = (
                (middle, high) if self.delta(middle, perturbation) > delta else (low, middle)
            )
        return mp.mpf(low if perturbation < 0 else high)


class _Atoms(NamedTuple):
    """The positive losses, descending, and the probabilities of at least as much under P and Q."""

    digits: int
    losses: Sequence[mpf]
    own: Sequence[mpf]
    other: Sequence[mpf]


@final
class AtomicProfile(ExactProfile):
    """Runs of randomized response: the loss is a sum of ``+-eps_i``, so that it has atoms.

    ``delta(eps) = P(L > eps) - e^eps Q(L > eps)``, a binomial sum, or a product of such (Kairouz,
    Oh and Viswanath 2017, theorem 3.3; Murtagh and Vadhan 2016, theorem 1.5). The sums of the
    atoms above each one are worked out once, in digits enough that their difference keeps those
    asked for; between two atoms delta is ``own - e^eps other``, so that its inverse is a logarithm.
    """

    def __init__(self, terms: Sequence[tuple[RandomizedResponsePairLoss, int]]) -> None:
        self._terms = tuple(terms)
        self._known: dict[tuple[int, int], _Atoms] = {}

    @property
    def largest(self) -> Fraction:
        """The largest loss, exactly, of parameters that mean the decimals that they print as."""
        sizes = (count * decimal(loss.epsilon) for loss, count in self._terms)
        return sum(sizes, Fraction(0))

    def delta(self, epsilon: mpf, perturbation: int) -> mpf:
        atoms = self._atoms(perturbation)
        with working_digits(atoms.digits):
            above = bisect_left(atoms.losses, -epsilon, key=lambda loss: -loss)
            value = _delta_above_atoms(atoms, above, epsilon)
        return +value

    def epsilon(self, delta: mpf, perturbation: int) -> mpf:
        """Return ``ln((own - delta) / other)`` on the piece where delta is reached."""
        from hockeystick.numerics.multiprecision import mp

        atoms = self._atoms(perturbation)
        with working_digits(atoms.digits):
            if _delta_above_atoms(atoms, len(atoms.losses), mp.zero) <= delta:
                return mp.zero
            # delta is 0 at the largest atom and rises from there to the smallest.
            indices = range(len(atoms.losses))
            last = (
                bisect_right(
                    indices, delta, key=lambda k: _delta_above_atoms(atoms, k, atoms.losses[k])
                )
                - 1
            )
            value = mp.log((atoms.own[last] - delta) / atoms.other[last])
        return +value

    def _atoms(self, perturbation: int) -> _Atoms:
        """Return the atoms for mpmath's current precision."""
        from hockeystick.numerics.multiprecision import mp

        least = min(loss.epsilon for loss, _ in self._terms)
        wanted = mp.dps + _SPARE_DIGITS + max(0, math.ceil(-math.log10(least)))
        if (perturbation, wanted) not in self._known:
            with working_digits(wanted):
                self._known[perturbation, wanted] = self._summed(perturbation, wanted)
        return self._known[perturbation, wanted]

    def _summed(self, perturbation: int, digits: int) -> _Atoms:
        """Return the positive losses with the sums of the probabilities from the largest on."""
        from hockeystick.numerics.multiprecision import mp
        from hockeystick.precision.profiles import exact

        atoms = [(mp.zero, mp.one)]
        for term, count in self._terms:
            runs = _binomial(exact(term.epsilon) * (1 + perturbation * ULP), count)
            atoms = [(loss + x, p * q) for loss, p in atoms for x, q in runs]
        kept = sorted((atom for atom in atoms if atom[0] > 0), key=lambda atom: -atom[0])
        own = accumulate(p for _, p in kept)
        other = accumulate(p * mp.exp(-loss) for loss, p in kept)
        return _Atoms(digits, [loss for loss, _ in kept], list(own), list(other))


def gaussian_profile(gaussians: Sequence[tuple[GaussianLoss, int]]) -> SmoothProfile:
    """Return the profile of Gaussians together, at ``mu = sqrt(sum n / sigma^2)``."""
    from hockeystick.numerics.multiprecision import mp
    from hockeystick.precision.profiles import gaussian_delta, reciprocal

    @lru_cache(maxsize=4)
    def mu(_: int) -> mpf:
        squares = (count * reciprocal(loss.noise_multiplier) ** 2 for loss, count in gaussians)
        return mp.sqrt(mp.fsum(squares))

    def profile(epsilon: mpf, perturbation: int) -> mpf:
        return gaussian_delta(epsilon, mu(mp.prec) * (1 + perturbation * ULP))

    return SmoothProfile(profile)


def number_of_atoms(terms: Sequence[tuple[RandomizedResponsePairLoss, int]]) -> int:
    """Return the number of values of a sum of several two-point losses."""
    return math.prod(count + 1 for _, count in terms)


def _delta_above_atoms(atoms: _Atoms, above: int, epsilon: mpf) -> mpf:
    """Return delta at an epsilon with a number of atoms above it."""
    from hockeystick.numerics.multiprecision import mp

    if above == 0:
        return mp.zero
    return max(atoms.own[above - 1] - mp.exp(epsilon) * atoms.other[above - 1], mp.zero)


def _binomial(epsilon: mpf, count: int) -> list[tuple[mpf, mpf]]:
    """Return the losses of several runs, from the largest on, and their probabilities."""
    from hockeystick.numerics.multiprecision import mp

    ratio = mp.exp(-epsilon)
    probability = mp.exp(-count * mp.log1p(ratio))
    found = []
    for minus in range(count + 1):
        found.append(((count - 2 * minus) * epsilon, probability))
        probability = probability * ratio * (count - minus) / (minus + 1)
    return found
