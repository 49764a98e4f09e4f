"""What the last of several noisy contractions costs: the theorem of shifted interpolation.

A run X steps ``X_t = F_t(X_(t-1)) + s Z_t``, ``Z_t ~ N(0, I)``, with public maps F_t that multiply
distances by at most c <= 1; the neighbour X' steps with F'_t, ``|F_t(x) - F'_t(x)| <= u_t`` for all
x. A projection after the noise changes nothing below.

**Theorem.** Let ``a_t >= 0`` be shifts with ``z_0 = 0``, ``z_t = c z_(t-1) + u_t - a_t >= 0`` and
``z_T = 0``. Then X_T and X'_T are mu-GDP with ``mu^2 = sum_t a_t^2 / s^2``. Where projections keep
all models within d of one another, any z_t may be replaced by d if it is larger: the shifts may
start after a step t from ``z_t = d``.

*Proof.* Let Y start with X' and share the noise of X: ``Y_t = y_t + s Z_t`` with y_t on the way
from ``F'_t(Y_(t-1))`` to ``F_t(X_(t-1))``, at the latter if they are within a_t, else a_t away from
the former. By induction ``|X_t - Y_t| <= z_t``, so that ``Y_T = X_T``. Given their common past
``Y_(t-1) = X'_(t-1) = x``, Y_t is a mixture of Gaussians whose means are within a_t of ``F'_t(x)``,
that of X'_t; no such mixture is farther from it than a single Gaussian at the distance a_t, as
hockey-stick divergences are convex. So Y to X' is an adaptive composition of Gaussian mechanisms of
``a_t / s`` each, and X_T a part of what it releases.

**The best shifts.** Multiplied by ``c^-t``, the sums of the shifts up to t are a path below that of
the moves u_t, from 0 to its end; with the time ``sum_(i<=t) c^(-2i)`` the cost of a path is its
energy, and the least that of the lower convex hull of the points just before each use, and the end.
If a record is used in every l-th step, the last one included, the hull is a line for l = 1; for
l > 1 the last use is released by itself, and the hull is a line before it (its slope falls with c).
So the best shifts are ``a_t = lambda c^(T-t)``, for l > 1 with ``a_T = u`` alone at the end. Other
positions in the cycle cost less: later steps see the last model alone.

**What attains it.** With ``F_t(x) = q_t x + const`` and records that move each step by u, all in
one direction, X_T is Gaussian with ``mu = sum_t u_t prod_(i>t) q_i / s``, over the square root of
``sum_t prod_(i>t) q_i^2``. With ``q_t = c``, but 0 in the step of the first use, and in that of the
last one the q that maximises it (at most c), this is the bound. A record may also reverse its
direction with the sign of the product of the q_i: let the public part drive w to and fro between
two far regions, and the record's gradient be opposite in them, with as little curvature as one
likes.

References:
    Bok, Su and Altschuler, "Shifted Interpolation for Differential Privacy", ICML 2024, sections 3
    and 4 (mu of full and cyclic batches, that of full batches shown to be attained).

How the records of a group fall into the batches of one shuffled epoch.

Given that k_j of them are in batch j, the sums of the batches move by at most k_j each, and by
``sqrt(sum k_j^2)`` together. Whoever sees the allocation, which does not depend on the data, faces
a mixture over it whose index is observed; whoever does not sees less.

Batches of b places each are filled by one record of the group after the other, each in one of the
free places: of T batches, the i that have most of the group get the next record with a probability
of at most i/T. That is what they get where each record is in any batch with the same chance. So
there is a coupling in which the next record of the former never goes to a batch of a higher rank,
by fullness, than that of the latter. If counts are majorized by others, in descending order, they
still are where each has one more, the former's at no higher a rank. Hence the sum of squares of
records in batches of one size is at most that of independent records in this coupling, and as
larger distances cost more, independent records bound shuffled ones whatever b is.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, TypeAlias, final

from hockeystick.numerics.multiprecision import mp, mpf, working_digits
from hockeystick.numerics.rounding import as_mpf, fraction_of

# More than any answer has, so that mu^2 may stand for the exact number.
_DIGITS: Final = 1100
_ERROR: Final = Fraction(1, 10**1060)


@final
@dataclass(frozen=True, slots=True)
class Powers:
    """The powers of a contraction c in [0, 1], without cancellation near 1."""

    c: Fraction

    def power(self, exponent: int) -> mpf:
        """Return ``c^k``."""
        if exponent == 0 or self.c == 1:
            return mp.mpf(1)
        return mp.exp(exponent * self._log) if self.c else mp.mpf(0)

    def gap(self, exponent: int) -> mpf:
        """Return ``1 - c^k``."""
        if exponent == 0 or self.c == 1:
            return mp.mpf(0)
        return -mp.expm1(exponent * self._log) if self.c else mp.mpf(1)

    def total(self, count: int, every: int = 1) -> mpf:
        """Return the sum of ``c^(every i)`` over ``i < count``."""
        return mp.mpf(count) if self.c == 1 else self.gap(every * count) / self.gap(every)

    @property
    def _log(self) -> mpf:
        """The logarithm of c, from its distance to 1."""
        return mp.log1p(-as_mpf(1 - self.c))


@final
@dataclass(frozen=True, slots=True)
class LastOfCycle:
    """Steps of which every ``period``-th one uses a record, the last one included.

    ``move`` is how far a use moves a step, in units of the noise 1; ``across`` the diameter in the
    same units, None for none. The factors of quadratic steps have all sizes from ``least`` to c.
    """

    c: Fraction
    least: Fraction
    steps: int
    period: int
    move: Fraction
    across: Fraction | None = None

    @property
    def uses(self) -> int:
        """How many steps use the record."""
        return -(-self.steps // self.period)

    @property
    def is_exact(self) -> bool:
        """Whether quadratic losses attain the upper bound."""
        return self.across is None and (self.period == 1 or self.least == 0 or self.steps == 1)

    def noise_lower(self) -> Fraction:
        """Return 1/mu of the upper bound, rounded down unless it is attained."""
        with working_digits(_DIGITS):
            found = self._noise(min(self._upper_ends()))
        return found if self.is_exact else found * (1 - _ERROR)

    def noise_attained(self) -> Fraction:
        """Return 1/mu of quadratic losses without projection, rounded up unless it is exact."""
        if self.is_exact:
            return self.noise_lower()
        with working_digits(_DIGITS):
            return self._noise(self._attained()) * (1 + _ERROR)

    def _noise(self, square: mpf) -> Fraction:
        """Return 1/mu where mu^2 is so many squares of the move."""
        return fraction_of(1 / mp.sqrt(square)) / self.move

    def _upper_ends(self) -> Iterator[mpf]:
        """Yield bounds of mu^2 in units of the move, that without projection first."""
        powers, before = Powers(self.c), self.uses - 1
        if self.period == 1:
            yield powers.total(self.uses) ** 2 / powers.total(self.uses, 2)
        else:
            yield self._with_last_use(
                powers.power(self.period - 1) * powers.total(before, self.period),
                powers.total(self.period * before, 2),
            )
        if self.across is None or self.c == 0:
            return
        across = as_mpf(self.across / self.move)
        starts = self._starts(across) if before else ()
        for window in sorted({max(0, min(start, before - 1)) for start in starts}):
            if window and across < 1 and self.period > 1:
                continue
            start = powers.power((window + 1) * self.period - 1) * across
            signal = start + powers.power(self.period - 1) * powers.total(window, self.period)
            noise = powers.total((window + 1) * self.period - 1, 2)
            yield mp.mpf(self._with_last_use(signal, noise))

    def _with_last_use(self, signal: mpf, noise: mpf) -> mpf:
        """Return the least cost of a distance under some noise, and of the last use.

        Both are covered together where the last use alone would leave its noise a part of theirs.
        """
        c = as_mpf(self.c)
        if signal >= c * noise:
            return (c * signal + 1) ** 2 / (1 + c**2 * noise)
        return 1 + signal**2 / noise

    def _starts(self, across: mpf) -> Iterator[int]:
        """Yield numbers of uses in the window after the diameter, around where mu^2 is least.

        Over ``x = c^(steps of the window)`` it is a square over ``1 - x^2``, least where the
        derivative vanishes, with and without the last use.
        """
        every, powers = self.period, Powers(self.c)
        if self.c == 1:
            roots = [across - 1, across - 2 + mp.mpf(2) / every]
        else:
            left = 1 - across * powers.gap(every)
            if left <= 0:
                return
            per_use = -every * powers._log
            root = -mp.log(left) / per_use
            roots = [root - 1, root - 2 + mp.mpf(2) / every]
        for root in roots:
            yield from (int(mp.floor(root)), int(mp.ceil(root)))

    def _attained(self) -> mpf:
        """Return mu^2 of quadratic losses in units of the move, with noise before the first use."""
        powers, before = Powers(self.c), self.uses - 1
        early = self.steps - before * self.period - 1
        if not before:
            return 1 / Powers(self.least).total(self.steps, 2)
        signal = powers.power(self.period - 1) * powers.total(before, self.period)
        noise = powers.total(self.period * before, 2)
        kept = powers.power(2 * (self.period * before - 1)) * as_mpf(self.least) ** 2
        noise += kept * Powers(self.least).total(early, 2)
        factor = max(min(signal / noise, as_mpf(self.c)), as_mpf(self.least))
        return (1 + factor * signal) ** 2 / (1 + factor**2 * noise)


# For each sum of squares, in ascending order, its probability.
Law: TypeAlias = tuple[tuple[int, Fraction], ...]

# Groups up to this size are taken apart: there are 37,338 ways to split 40 records into batches.
LARGEST_GROUP: Final = 40
# Sums of squares are kept as they are while there are no more of them, else rounded up a little.
_FEW: Final = 64
_STEP: Final = Fraction(17, 16)
# No probability is below this: what is less is counted with the next larger sum of squares.
_LEAST: Final = Fraction(1, 10**250)


@lru_cache(maxsize=256)
def squares_of_batches(records: int, batches: int) -> Law:
    """Return the law of ``sum k_j^2`` of independent records, rounded up where it is long."""
    return _thinned(exact_law(records, batches))


def exact_law(records: int, batches: int) -> Law:
    """Return the law of ``sum k_j^2``, each record in one of the batches, all equally likely."""
    ways: dict[int, int] = defaultdict(int)
    for square, count in _allocations(records, records, batches):
        ways[square] += count
    every = batches**records
    return tuple((square, Fraction(count, every)) for square, count in sorted(ways.items()))


def _allocations(records: int, largest: int, batches: int) -> Iterator[tuple[int, int]]:
    """Yield sums of squares, none above a largest count, and in how many ways each comes about."""
    if records == 0:
        yield 0, 1
        return
    top = min(largest, records)
    if top == 0 or top * batches < records:
        return
    chosen = 1
    for many in range(min(records // top, batches) + 1):
        left = records - many * top
        ways = chosen * math.comb(batches, many)
        for square, count in _allocations(left, top - 1, batches - many):
            yield square + many * top * top, ways * count
        chosen = chosen * math.comb(left, top)


def _thinned(law: Law) -> Law:
    """Return a law that is stochastically larger, of fewer numbers, none of them too unlikely."""
    kept: dict[int, Fraction] = {}
    gathered, last = Fraction(0), law[-1][0]
    before = law[0][0] - 1
    few = len(law) <= _FEW
    for place, (square, chance) in enumerate(law):
        gathered += chance
        further = place + 1 == len(law) or law[place + 1][0] > before * _STEP
        if gathered >= _LEAST and (few or further):
            kept[square] = gathered
            gathered, before = Fraction(0), square
    if gathered:
        kept[last] = gathered
        if gathered < _LEAST:
            kept[min(kept)] -= _LEAST - gathered
            kept[last] = _LEAST
    return tuple((square, chance) for square, chance in kept.items() if chance)
