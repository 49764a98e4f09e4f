"""Losses of training that releases its last iterate, or clips batches as wholes.

*The last iterate*, on batches drawn at random, of a fixed size. Steps are as in
``bounds/shifted_interpolation.py``, on a batch of b of n records, all equally likely and drawn
afresh, the same under X and X' but for the record that differs, which is in it with probability
``p = b/n``. In units of the gradient bound two records are at most 2 apart, the two versions of one
at most u.

**Theorem.** Let ``z_t`` be the distance that the runs may have after t of T steps,
``u (1 + c + ... + c^(t-1))``, or d if projections keep them within it. Then X_T is no easier to
tell from X'_T than the composition of

- ``C_p(G(2/s))``, a sample of a Gaussian, ``n_0`` times,
- ``C_p(G(2/(w s)))``, ``n_1`` times,
- and one Gaussian mechanism with
  ``mu = c^(n_0 + n_1) z_t / (s sqrt(1 - w^2) sqrt(sum_(i<n_1) c^(2i)))``,

for ``t = T - n_0 - n_1``, ``n_1 >= 1`` and any ``0 < w < 1``; for t = 0 than ``C_p(G(2/s))``, T
times.

*Proof.* Let Y be X' up to step t, and from there on step with the gradients of X, with shifts a_i
towards X in the last n_1 steps that end the distance: the least sum of their squares is
``(c^(n_0+n_1) z_t)^2 / sum_(i<n_1) c^(2i)``. Given their common past x, a step of Y without its
shift is a step of X from x, and ``C_p(G(2/s))`` tells it from the step of X' (Balle, Barthe and
Gaboardi 2018, theorem 2: with the record or without are at most 2 apart). In a step with a shift,
split the noise into independent parts of variances ``w^2 s^2`` and ``(1 - w^2) s^2``. First add the
former: that step without its shift, told by ``C_p(G(2/(w s)))``. Then, given its outcome, add the
shift, which depends on the batch and on X but is never longer than a_i, and the latter:
``G(a_i / (s sqrt(1 - w^2)))``, as in the theorem for fixed batches. All this is an adaptive
composition; X_T is a part of it.

Where a record is in most batches, a step in which it always is costs less: the full batches' bound,
by shifts alone, holds here as well.

Which n_0, n_1 and w are best depends on delta; they are chosen by the central limit theorem, which
proves nothing. Any choice holds.

**Attained** is a run of quadratic losses in which the record adds u where it is drawn, among others
that are all alike, with its last J steps at the factor c and earlier ones at the least factor.
Each hit among the last J moves w by at least ``c^(J-1) u``. Moving less costs less: with k hits or
more, which has a binomial chance, it is moved by ``k c^(J-1) u``, and else not at all, a sampled
Gaussian.

References:
    Bok, Su and Altschuler, "Shifted Interpolation for Differential Privacy", ICML 2024, section 4;
    Choquette-Choo, Ganesh, Steinke and Thakurta, "Privacy Amplification for Matrix Mechanisms",
    ICLR 2024, for mixtures of Gaussians that move less.

*Sums of batches that are clipped as a whole.* The example that differs moves its batch's sum by at
most 2C: the pair of half the noise dominates. The loss of data of a given size depends on the
probability that the batch holds another example.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, NamedTuple, cast, final

import numpy as np

from hockeystick.adjacency import Adjacency
from hockeystick.mechanisms import BatchClipped, Gaussian, PoissonSubsampled, RandomAllocation
from hockeystick.mechanisms.training.last_iterate import FIXED_SIZE, LastIterate
from hockeystick.numerics import decimal
from hockeystick.numerics.multiprecision import mp, working_digits
from hockeystick.numerics.rounding import as_mpf, fraction_of
from hockeystick.privacy_loss.bounds.shifted_interpolation import LastOfCycle, Powers
from hockeystick.privacy_loss.core.base import (
    Array,
    DominatingPair,
    NoAnalysisError,
    PrivacyLoss,
    dominating_pair,
    sampled_loss,
)
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.composition import LEAST_NOISE, ComposedLoss, edge_pair
from hockeystick.privacy_loss.core.symmetrized import (
    DominatedLoss,
    costliest,
    dominated_pair,
    exchanged_pair,
)
from hockeystick.privacy_loss.guarantees import ContaminatedLoss
from hockeystick.privacy_loss.noise.gaussian import GaussianLoss
from hockeystick.privacy_loss.noise.gaussian_mixture import GaussianMixtureLoss
from hockeystick.privacy_loss.sampling.random_allocation import AllocationLoss

_DIGITS: Final = 60
_ERROR: Final = Fraction(1, 10**40)
# A Gaussian of less mu than 1e-9 counts as one of 1e-9.
_MOST_NOISE: Final = Fraction(10**9)
_SHARES: Final = 32
_LENGTHS: Final = 60
_GRID: Final = 2**80


class Split(NamedTuple):
    """Steps n_0 and n_1, the share w of the noise, and the noise of the one Gaussian, if any."""

    plain: int
    shifted: int
    share: Fraction
    noise: Fraction | None


@final
@dataclass(frozen=True, slots=True)
class SampledIterates:
    """Steps with a contraction c on random batches, in units of the gradient bound."""

    c: Fraction
    least: Fraction
    rate: Fraction
    steps: int
    noise: Fraction
    change: int
    across: Fraction | None

    def split(self) -> Split:
        """Return how to account for the steps: all alike unless an estimate is 1% better."""
        whole = Split(self.steps, 0, Fraction(1), None)
        if self.steps == 1:
            return whole
        after, shifted, share = self._tried()
        value, place = self._cheapest(after, shifted, share)
        if not value < 0.99 * self.steps * float(self._clt(np.array(1.0))):
            return whole
        n, m = int(after[place]), int(shifted[place])
        w = Fraction(int(share[place] * _SHARES), _SHARES)
        return Split(n - m, m, w, self._gaussian_noise(n, m, w))

    def estimate(self, split: Split) -> float:
        """Return the estimate of mu^2 that a split was chosen by."""
        steps = split.plain * float(self._clt(np.array(1.0)))
        if split.shifted:
            steps += split.shifted * float(self._clt(np.array(float(split.share))))
        return steps + (float(split.noise) ** -2.0 if split.noise else 0.0)

    def _tried(self) -> tuple[Array, Array, Array]:
        """Return steps after the hidden ones, those with shifts among them, and shares."""
        numbers = np.rint(np.geomspace(1, self.steps - 1, _LENGTHS))
        lengths: Any = np.unique(numbers).astype(np.int64)
        shares = np.arange(4, _SHARES) / _SHARES
        after, shifted, share = np.meshgrid(lengths, lengths, shares, indexing="ij")
        kept = shifted <= after
        return after[kept], shifted[kept], share[kept]

    def _clt(self, share: Array) -> Array:
        """Return what a step on a sample adds to mu^2, or what it does without sampling if less."""
        from scipy.special import ndtr

        mu = 2.0 / (float(self.noise) * share)
        square = np.minimum(mu * mu, 600.0)
        sampled = np.exp(square) * ndtr(1.5 * mu) + 3.0 * ndtr(-0.5 * mu) - 2.0
        return np.asarray(np.minimum(2.0 * float(self.rate) ** 2 * sampled, mu * mu))

    def _cheapest(self, after: Array, shifted: Array, share: Array) -> tuple[float, int]:
        gap = float(1 - self.c)
        log_c = math.log1p(-gap) if gap < 1.0 else -1e9
        hidden = self.steps - after
        total = hidden if gap == 0.0 else -np.expm1(hidden * log_c) / gap
        apart = self.change * total
        if self.across is not None:
            apart = np.minimum(apart, float(self.across))
        squares = shifted if gap == 0.0 else np.expm1(2 * shifted * log_c) / np.expm1(2 * log_c)
        shift = np.exp(2 * after * log_c) * apart**2 / squares
        values = (after - shifted) * self._clt(np.array(1.0)) + shifted * self._clt(share)
        values = values + shift / (float(self.noise) ** 2 * (1.0 - share**2))
        place = int(np.argmin(values))
        return float(values[place]), place

    def _gaussian_noise(self, after: int, shifted: int, share: Fraction) -> Fraction:
        """Return 1/mu of the Gaussian that covers the distance, rounded down."""
        powers = Powers(self.c)
        with working_digits(_DIGITS):
            apart = self.change * powers.total(self.steps - after)
            if self.across is not None:
                apart = min(apart, as_mpf(self.across))
            apart *= powers.power(after)
            if apart == 0:
                return _MOST_NOISE
            room = mp.sqrt(as_mpf(1 - share**2) * powers.total(shifted, 2))
            found = fraction_of(room / apart) * self.noise * (1 - _ERROR)
        return min(found, _MOST_NOISE)

    def attained_sample(self) -> tuple[Fraction, Fraction]:
        """Return the rate and the noise multiplier of a sampled Gaussian that is attained."""
        rate, last, hits = self._best_hits()
        powers, least = Powers(self.c), Powers(self.least)
        with working_digits(_DIGITS):
            early = as_mpf(self.least**2) * least.total(self.steps - last, 2)
            variance = powers.total(last, 2) + powers.power(2 * (last - 1)) * early
            noise = fraction_of(mp.sqrt(variance) / powers.power(last - 1))
        return rate, noise * self.noise * (1 + _ERROR) / (hits * self.change)

    def _best_hits(self) -> tuple[Fraction, int, int]:
        """Return the chance of enough hits in the last steps: it, the steps and the hits.

        Those of the largest epsilon at a usual delta, an estimate.
        """
        from scipy.special import betainc

        last = np.unique(np.rint(np.geomspace(1, self._longest(), _LENGTHS)).astype(np.int64))
        mean = last * float(self.rate)
        around = np.arange(-4.0, 9.0)[:, None] * np.sqrt(mean * (1.0 - float(self.rate)))
        hits = np.clip(np.rint(mean + around), 1, last).astype(np.int64)
        last = np.broadcast_to(last, hits.shape)
        # Rounded down by more than what floats lose.
        chance = betainc(hits, last - hits + 1.0, float(self.rate)) * (1.0 - 1e-6)
        mu = hits * self.change * self._kept(last.astype(np.float64))
        place = np.argmax(_epsilon(chance, mu))
        exact = Fraction(math.floor(float(chance.flat[place]) * _GRID), _GRID)
        if not exact:
            return self.rate, 1, 1
        return exact, int(last.flat[place]), int(hits.flat[place])

    def _longest(self) -> int:
        """Return the most last steps of which hits are counted: where the first have faded."""
        gap = float(1 - self.c)
        return 1 if gap >= 1.0 else max(1, int(min(self.steps, 5.0 / max(gap, 1e-9), 1e9)))

    def _kept(self, last: Array) -> Array:
        """Return the size of the first of some last steps' hits, in units of the noise."""
        gap, least = float(1 - self.c), float(self.least)
        if gap >= 1.0:
            return np.full(last.shape, 1.0 / float(self.noise))
        log_c = math.log1p(-gap)
        squares = last if gap == 0.0 else np.expm1(2 * last * log_c) / np.expm1(2 * log_c)
        faded = np.exp(2 * (last - 1) * log_c)
        early = self.steps - last
        rest = early if least == 1.0 else (1.0 - least ** (2.0 * early)) / (1.0 - least**2)
        variance = squares + faded * least**2 * rest
        return np.asarray(np.sqrt(faded / variance) / float(self.noise))


def _epsilon(chance: Array, mu: Array) -> Array:
    """Return epsilon at a usual delta, 1e-5, of samples of Gaussians, an estimate."""
    from scipy.special import ndtr

    low, high = np.zeros(chance.shape), np.full(chance.shape, 500.0)
    for _ in range(50):
        middle = 0.5 * (low + high)
        inner = np.log1p(np.expm1(middle) / chance)
        tail = ndtr(0.5 * mu - inner / mu) - np.exp(inner) * ndtr(-0.5 * mu - inner / mu)
        above = chance * tail > 1e-5
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return low


@dominating_pair.register
def _(mechanism: LastIterate) -> DominatingPair:
    if mechanism.steps == 0:
        return DominatingPair(None, None)
    if mechanism.noise_multiplier == 0.0 and mechanism.rate < 1:
        raise NoAnalysisError("random batches without noise are not analysed")
    if edge := edge_pair(mechanism.noise_multiplier, LEAST_NOISE):
        return edge
    if mechanism.batches == FIXED_SIZE and mechanism.rate < 1:
        return _on_samples(mechanism)
    cycle = _cycle(mechanism)
    projected = cycle.across is not None
    below = None if projected or _alternates(mechanism) else GaussianLoss(cycle.noise_attained())
    return dominated_pair(GaussianLoss(cycle.noise_lower()), below)


def _cycle(mechanism: LastIterate) -> LastOfCycle:
    noise, (low, high) = decimal(mechanism.noise_multiplier), mechanism.factors
    across = mechanism.moves_across
    return LastOfCycle(
        max(abs(low), abs(high)),
        max(low, -high, Fraction(0)),
        mechanism.steps,
        mechanism.period,
        mechanism.change / noise,
        None if across is None else across / noise,
    )


def _alternates(mechanism: LastIterate) -> bool:
    """Return whether distances change sign in every step, and no curvature is left to follow."""
    low, high = mechanism.factors
    return low == high < 0


def _on_samples(mechanism: LastIterate) -> DominatingPair:
    """Return the losses on random batches: samples, and a Gaussian for what they hide."""
    cycle, noise = _cycle(mechanism), decimal(mechanism.noise_multiplier)
    sampled = SampledIterates(
        cycle.c,
        cycle.least,
        mechanism.rate,
        mechanism.steps,
        noise,
        mechanism.change,
        mechanism.moves_across,
    )
    attained = _attained(mechanism, sampled)
    split, always = sampled.split(), GaussianLoss(cycle.noise_lower())
    if always.mu * always.mu <= sampled.estimate(split):
        return DominatingPair(*(DominatedLoss(always, one) for one in attained))
    if split.noise is None:
        whole = exchanged_pair(_worst(noise, mechanism), *attained)
        rest = _worst_term(noise, mechanism, split.plain - 1)
        return DominatingPair(*(ComposedLoss(((one, 1), *rest)) for one in whole if one))
    parts = (
        *_worst_term(noise, mechanism, split.plain),
        *_worst_term(noise * split.share, mechanism, split.shifted),
    )
    ends = (DominatedLoss(GaussianLoss(split.noise), one) for one in attained)
    return DominatingPair(*(ComposedLoss((*parts, (end, 1))) for end in ends))


def _worst(noise: Fraction, mechanism: LastIterate) -> PrivacyLoss:
    """Return the loss of a step on a sample in which a record takes another one's place."""
    return sampled_loss(GaussianLoss(noise / 2), mechanism.rate, True)


def _worst_term(
    noise: Fraction, mechanism: LastIterate, runs: int
) -> tuple[tuple[PrivacyLoss, int], ...]:
    """Return several steps on samples, of which no example is known."""
    loss = exchanged_pair(_worst(noise, mechanism), None, None).removing
    return ((loss, runs),) if loss and runs else ()


def _attained(
    mechanism: LastIterate, sampled: SampledIterates
) -> tuple[PrivacyLoss | None, PrivacyLoss | None]:
    """Return the losses of quadratic losses in both directions; None with a projection."""
    if mechanism.moves_across is not None or _alternates(mechanism):
        return None, None
    rate, noise = sampled.attained_sample()
    removing, adding = (sampled_loss(GaussianLoss(noise), rate, way) for way in (True, False))
    return removing, adding


# A chance to be alone is rounded up to this at least.
_LEAST: Final = Fraction(1, 10**90)
# Noise for which the mixture of two Gaussians is in the reach of floats.
_REACH: Final = (1e-90, 1e90)


@dominating_pair.register
def _(mechanism: BatchClipped) -> DominatingPair:
    inner, examples = mechanism.inner, mechanism.examples
    alone = dominating_pair(inner)
    if examples == 1 and mechanism.adjacency is Adjacency.ZERO_OUT:
        return alone
    noise = cast(Gaussian, inner.inner).noise_multiplier
    twice = dominating_pair(replace(inner, inner=Gaussian(noise / 2.0)))
    if isinstance(inner, RandomAllocation):
        rate = Fraction(inner.participations, inner.steps)
    else:
        rate = decimal(inner.rate)
    if (rate == 1 and examples > 1) or noise in (0.0, math.inf) or None in (*twice, *alone):
        return twice
    lonely = _probability_alone(rate, examples)
    ways = zip((True, False), twice, alone, strict=True)
    found = []
    for way, *losses in ways:
        above, below = cast(list[PrivacyLoss], losses)
        attained = _attained_by_data(inner, above, below, lonely, way)
        found.append(DominatedLoss(cast(CellLoss, above.dominating), attained))
    return DominatingPair(*found)


def _probability_alone(rate: Fraction, examples: int) -> Fraction:
    """Return the chance that a given batch holds none of the other examples, rounded up."""
    if examples == 1:
        return Fraction(1)
    with working_digits(_DIGITS):
        missed = 1 - mp.mpf(rate.numerator) / rate.denominator
        chance = missed ** (examples - 1)
        found = math.nextafter(float(chance) * (1.0 + 2.0**-50), 2.0)
    return min(max(Fraction(found), _LEAST), Fraction(1))


def _attained_by_data(
    inner: PoissonSubsampled | RandomAllocation,
    above: PrivacyLoss,
    alone: PrivacyLoss,
    lonely: Fraction,
    removing: bool,
) -> PrivacyLoss | None:
    """Return a loss that data sets reach, given those of a move by 2C and by C; None if unknown."""
    if isinstance(inner, RandomAllocation):
        least, together = alone.attained, above.attained
        some_empty = math.nextafter(float(inner.steps * lonely), math.inf)
        # More contamination leaves next to nothing.
        if not isinstance(together, AllocationLoss) or some_empty > 0.25:
            return least
        found = ContaminatedLoss(together, some_empty)
        return found if least is None else costliest([found, least])
    noise = cast(Gaussian, inner.inner).noise_multiplier
    if 1 - lonely < _LEAST or not _REACH[0] <= noise <= _REACH[1]:
        return alone.attained
    # Mirrored, the example's end of the ball is 0, an empty batch at C and one of others at 2C;
    # with the chance to be alone rounded up the half-lines, which are the tests, tell less.
    near = 1 / decimal(noise)
    pair = GaussianMixtureLoss((near, 2 * near), (lonely, 1 - lonely), not removing)
    return sampled_loss(pair, inner.rate, removing)
