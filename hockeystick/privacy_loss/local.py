"""Losses of local reports; of shuffled ones, the dominating pair and those of some data.

Why the stronger clones dominate, for all data, where all users run the same eps0-DP randomizer, and
a pair with less where two of its reports are at most T apart in total variation: let R and R' be
the laws of the first user's report for two data, ``k = e^eps`` with ``1 <= k <= e^eps0``, and w the
pointwise least density of the others' reports, at least ``e^-eps0`` times R and R'. (Where others
run randomizers of their own, it need not be: among constants of their own, which are different, the
one other report is seen.) Each of the others reports from w with probability ``|w|``; reveal who
reported from the remainder, and what. Then

    delta(eps) <= E[((g_1 + ... + g_n) / n)_+],   g = (R - k R')/w on a draw of w, or else 0,

with independent g: in the sum that many are not 0 as in the sample, by
``P[Bin(n, p) = m] m/(n p) = P[Bin(n - 1, p) = m - 1]``. For the pair g is ``e^eps0 - k`` and
``1 - k e^eps0``, each with probability ``a = T/(e^eps0 - 1)``, and ``e^eps0 (1 - k)`` with
probability ``e^-eps0 (1 - (e^eps0 + 1) a)``, or else 0: the clones for ``T = tanh(eps0/2)``, the
largest there is. All these g have the mean ``1 - k``, so that it is enough that the pair's is the
largest in convex order:

- for ``t >= 0``, let B be where ``R - k R' > t w`` and b = R(B). There ``w >= R e^-eps0``, and
  ``R'(B) >= max(b e^-eps0, b - T)``, so that
  ``E[(g - t)_+] <= b (1 - t e^-eps0) - k R'(B) <= a (e^eps0 - k - t)_+``: the largest is at
  ``b = a e^eps0``, and it is what the pair has;
- for ``t = -s < 0``, ``E[(-s - g)_+]`` is at most the sum of
  ``(k R' - R - s e^-eps0 max(R, R'))_+``, which is convex and homogeneous where ``R >= R'``, and
  where ``R <= R'``: no less if each report is split into ones where (R, R') is as ``(e^eps0, 1)``,
  as (1, 1), and as ``(1, e^eps0)``. With c as much of the first as of the last it is
  ``c (k e^eps0 - 1 - s)_+ + e^-eps0 (1 - (e^eps0 + 1) c) (e^eps0 (k - 1) - s)_+``, which rises
  with c, and ``c (e^eps0 - 1) <= T``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias, final

import numpy as np

from hockeystick.kernels.shuffled_reports import binomial
from hockeystick.mechanisms.base import Mechanism
from hockeystick.mechanisms.local.reports import (
    RAPPOR,
    Encoding,
    RandomizedResponse,
    ShuffledReports,
    UnaryEncoding,
)
from hockeystick.mechanisms.noise.integer_noise import DiscreteLaplace
from hockeystick.notions import PureDP
from hockeystick.numerics import ULP
from hockeystick.numerics.multiprecision import mp
from hockeystick.precision import profiles
from hockeystick.privacy_loss.core.atomic import FewAtoms, ThreePointLoss, kept, read_only_atoms
from hockeystick.privacy_loss.core.base import (
    Atoms,
    DominatingPair,
    NoAnalysisError,
    PrivacyLoss,
    both,
    dominating_pair,
)
from hockeystick.privacy_loss.core.cell_loss import CellLoss
from hockeystick.privacy_loss.core.mixtures import (
    RandomizedResponsePairLoss,
    infinity_mass_pair,
    merged,
)
from hockeystick.privacy_loss.core.symmetrized import DominatedLoss, costliest
from hockeystick.privacy_loss.shuffling import (
    CELLS,
    BinaryReportsLoss,
    BlanketLoss,
    ReportsLoss,
    StrongerClonesLoss,
    blanket_of,
)


@final
@dataclass(frozen=True, slots=True)
class RandomizedResponseLoss(ThreePointLoss):
    """``+-eps`` as e^eps to 1, and 0 for the K - 2 categories that are neither of the two.

    The same in both directions:
    ``delta(eps') = (e^eps - e^eps')_+ / (e^eps + K - 1)`` for ``eps' >= 0``.

    References:
        Kairouz, Oh and Viswanath, "Extremal Mechanisms for Local Differential Privacy", 2014.
    """

    epsilon: float
    categories: int

    def exact_atoms(self, perturbation: int = 0) -> profiles.AtomList:
        epsilon = profiles.exact(self.epsilon) * (1 + perturbation * ULP)
        return profiles.randomized_response(epsilon, self.categories)


@dominating_pair.register
def _(mechanism: RandomizedResponse) -> DominatingPair:
    if mechanism.epsilon == 0.0:
        return DominatingPair(None, None)
    if mechanism.epsilon == math.inf:
        return infinity_mass_pair()
    if mechanism.categories == 2:
        return both(RandomizedResponsePairLoss(mechanism.epsilon))
    return both(RandomizedResponseLoss(mechanism.epsilon, mechanism.categories))


_MOST_HASHES: Final = 10_000


@final
@dataclass(frozen=True, slots=True)
class UnaryEncodingLoss(ThreePointLoss):
    """``+-eps`` as e^eps to 1, and 0 where the two bits that differ contradict each other.

    Two binary randomized responses of eps/2 each for the symmetric kind; for the optimized one the
    loss is 0 with probability 1/2. The same in both directions.
    """

    epsilon: float
    optimized: bool

    def exact_atoms(self, perturbation: int = 0) -> profiles.AtomList:
        epsilon = profiles.exact(self.epsilon) * (1 + perturbation * ULP)
        if self.optimized:
            return profiles.three_points(epsilon, mp.mpf(0.5))
        return profiles.binary_runs(epsilon / 2, 2)


@final
@dataclass(frozen=True, slots=True)
class RAPPORLoss(FewAtoms):
    """The sum of ``bits`` binary randomized responses of ``ln((1 - f/2) / (f/2))`` each.

    The same in both directions.
    """

    flip: float
    bits: int

    same_both_ways = True

    def exact_atoms(self, perturbation: int = 0) -> profiles.AtomList:
        # ln(2/f - 1) loses what f is below 1; 1 - f loses f where it is small.
        with mp.extraprec(64):
            flip = min(profiles.exact(self.flip) * (1 - perturbation * ULP), 1)
            each = 2 * mp.atanh(1 - flip) if flip > 0.5 else mp.log(2 / flip - 1)
        return profiles.binary_runs(each, self.bits)


@dominating_pair.register
def _(mechanism: UnaryEncoding) -> DominatingPair:
    optimized = mechanism.kind is Encoding.OPTIMIZED
    if mechanism.epsilon == 0.0:
        return DominatingPair(None, None)
    if mechanism.epsilon == math.inf:
        return infinity_mass_pair(0.5 if optimized else 1.0)
    return both(UnaryEncodingLoss(mechanism.epsilon, optimized))


@dominating_pair.register
def _(mechanism: RAPPOR) -> DominatingPair:
    if mechanism.flip == 1.0:
        return DominatingPair(None, None)
    if mechanism.flip == 0.0:
        return infinity_mass_pair()
    if mechanism.hashes > _MOST_HASHES:
        raise NoAnalysisError(
            f"RAPPOR is analysed for up to {_MOST_HASHES:,} hashes; "
            "repeat RandomizedResponse for as many bits instead"
        )
    return both(RAPPORLoss(mechanism.flip, 2 * mechanism.hashes))


_MOST_USERS: Final = 10**9
# Outside of an event and in it, up to a factor.
Shares: TypeAlias = tuple[float, float]
# Losses over the largest one above which reports are counted.
_THRESHOLDS: Final = (0.0, 0.3, 0.6, 0.9)
# Epsilons of a randomizer between which the stronger clones are used.
LEAST_EPSILON: Final = 1e-6
MOST_EPSILON: Final = 20.0


@final
@dataclass(frozen=True, slots=True)
class CountLoss(ReportsLoss):
    """The loss of a count of reports or bits: ``Bin(trials, odds / (1 + odds))`` of the others'.

    ``own`` has the first user's masses under P and under Q: of 0, 1, ... that are added.
    """

    epsilon: float
    trials: int
    odds: float
    own: tuple[tuple[float, ...], ...]

    @classmethod
    def of_event(
        cls, epsilon: float, users: int, shares: tuple[Shares, Shares], shared: bool, held: bool
    ) -> CountLoss:
        """Return that of reports in an event, given its shares with one datum and with another one.

        What is made of each report by itself is post-processing. All others hold the first datum
        (``shared``) or, of the same odds as the other one, any; under P the first user holds the
        first (``held``) or the other one. Of two categories the count is a sufficient statistic.
        """
        own = tuple((out * (1.0 / (out + of)), of * (1.0 / (out + of))) for out, of in shares)
        out, of = shares[0 if shared else 1]
        return cls(epsilon, users - 1, of / out, own if held else own[::-1])

    @classmethod
    def of_bits(cls, epsilon: float, users: int, held: bool) -> CountLoss:
        """Return that of bits of symmetric unary encodings, where all others hold one category.

        Of the 1s at that category and the 0s at another one together each of the others adds
        Bin(2, s), ``s = e^(eps/2) / (1 + e^(eps/2))``, and the first user, who holds that category
        under P (``held``) or under Q and the other one else, Bin(2, s) or Bin(2, 1 - s).
        """
        odds = math.exp(0.5 * epsilon)
        likely, rare = odds / (1.0 + odds), 1.0 / (1.0 + odds)
        first = rare * rare, 2.0 * likely * rare, likely * likely
        own = first, first[::-1]
        return cls(epsilon, 2 * (users - 1), odds, own if held else own[::-1])

    @kept(64)
    def atoms(self) -> Atoms:
        # One for each number, or for several neighbours of them; all is rounded down.
        first, mass = binomial(self.trials, self.odds)
        reach = len(self.own[0]) - 1
        padded = np.pad(mass, reach)
        shifts = [padded[reach - k : padded.size - k] for k in range(reach + 1)]
        p, r = (np.asarray(masses) @ np.stack(shifts) for masses in self.own)
        # Next to omitted numbers the masses lack one of the summands, and are omitted as well.
        last = first + mass.size - 1
        kept = slice(0 if first == 0 else reach, None if last == self.trials else -reach)
        p, r = p[kept], r[kept]
        size = -(-p.size // CELLS)
        starts = np.arange(0, p.size, size)
        p, r = np.add.reduceat(p, starts), np.add.reduceat(r, starts)
        error = ULP * ((16.0 + 4.0 * self.epsilon) * mass.size + size + 64.0)
        # Neighbouring masses have nearly the same relative error, which cancels in their ratio.
        less = np.log(p / r) - ULP * (64.0 + 16.0 * self.epsilon) * (size + 4.0)
        log_p = np.log(p)
        return read_only_atoms(*merged(Atoms(less, log_p, error + 2.0 * ULP * np.abs(log_p))))


def _beyond(loss: CellLoss, threshold: float, way: float) -> tuple[float, float]:
    """Return how likely a loss exceeds a threshold under P and under Q; one up, the other down."""
    atoms, cells = loss.atoms(), loss.cells(np.array([threshold, math.inf]))
    above = atoms.loss > threshold
    log_p = np.append(atoms.log_p[above], cells.log_p)
    log_q = np.append((atoms.log_p - atoms.loss)[above], cells.log_q)
    error = np.append(atoms.error[above], cells.error) + 64.0 * ULP * (1.0 + loss.supremum)
    return float(np.exp(log_p + way * error).sum()), float(np.exp(log_q - way * error).sum())


def _events(loss: PrivacyLoss | None) -> Iterator[tuple[Shares, Shares]]:
    """Yield how likely a loss exceeds values under P, rounded down, and under Q, rounded up.

    With less under P and more under Q it is a mixture of that event and a coin: post-processing.
    """
    if not isinstance(loss, CellLoss):
        return
    for share in _THRESHOLDS:
        likely, rare = _beyond(loss, share * loss.supremum, -1.0)
        if 0.0 < rare < likely < 1.0:
            yield (1.0 - likely, likely), (1.0 - rare, rare)


def _dominating_loss(
    randomizer: Mechanism, pair: DominatingPair, epsilon: float, users: int
) -> CellLoss:
    # Of integers next to each other the noise tells what binary responses do.
    integers = isinstance(randomizer, DiscreteLaplace) and randomizer.sensitivity == 1
    if integers or (isinstance(randomizer, RandomizedResponse) and randomizer.categories == 2):
        return BinaryReportsLoss(epsilon, users)
    variation = 0.0
    for loss in (one.dominating for one in pair if one):
        likely, rare = _beyond(loss, 0.0, 1.0) if isinstance(loss, CellLoss) else (1.0, 0.0)
        variation = max(variation, likely - rare)
    return BlanketLoss(blanket_of(randomizer, epsilon, variation), epsilon, users)


def _attained_losses(
    randomizer: Mechanism, alone: PrivacyLoss | None, epsilon: float, users: int
) -> list[ReportsLoss]:
    found: list[ReportsLoss] = []
    if isinstance(randomizer, UnaryEncoding) and randomizer.kind is Encoding.SYMMETRIC:
        found = [CountLoss.of_bits(epsilon, users, held) for held in (True, False)]
    # Of all that is epsilon-DP, responses of two or three categories.
    kinds: tuple[int, ...] = (2, 3) if isinstance(randomizer, PureDP) else ()
    if isinstance(randomizer, RandomizedResponse):
        kinds = (randomizer.categories,)
    more = math.exp(epsilon)
    known = [((one - 1.0, more), (more + one - 2.0, 1.0)) for one in kinds]
    found += [
        CountLoss.of_event(epsilon, users, one, shared, held)
        for one in known or dict.fromkeys(_events(alone and alone.attained))
        for shared in (True, False)
        for held in (True, False)
    ]
    clones = (categories for categories in kinds if categories > 2)
    return found + [StrongerClonesLoss(epsilon, one, users) for one in clones]


@dominating_pair.register
def _(mechanism: ShuffledReports) -> DominatingPair:
    pair, users = dominating_pair(mechanism.randomizer), mechanism.users
    epsilon = max((loss.supremum for loss in pair if loss is not None), default=0.0)
    if users == 1 or epsilon == 0.0:
        return pair
    if epsilon == math.inf:
        if not isinstance(mechanism.randomizer, RandomizedResponse | PureDP):
            raise NoAnalysisError(
                "reports are amplified by shuffling where their randomizer has a finite epsilon"
            )
        # Reports equal the data: the differing one is identified.
        return infinity_mass_pair()
    if users > _MOST_USERS:
        raise NoAnalysisError(
            f"shuffled reports are analysed for up to {_MOST_USERS:,} users; fewer cost no less, "
            "so account for that many"
        )
    attained_losses: list[ReportsLoss] = []
    if LEAST_EPSILON <= epsilon <= MOST_EPSILON:
        attained_losses = _attained_losses(mechanism.randomizer, pair.removing, epsilon, users)
        dominating = _dominating_loss(mechanism.randomizer, pair, epsilon, users)
    else:
        dominating = RandomizedResponsePairLoss(epsilon)
    return both(DominatedLoss(dominating, costliest(attained_losses)))
