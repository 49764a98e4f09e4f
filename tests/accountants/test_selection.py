"""Tuning by the profile of one run: the worst order of its outcomes, finite pairs, refusals."""

import math
from itertools import permutations
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.accountants.selection.orders import Generating, Ranked, generating
from hockeystick.accountants.selection.pairs import FinitePair, Knots
from hockeystick.errors import UnsupportedError
from hockeystick.mechanisms import tuning
from hockeystick.numerics.multiprecision import mp
from hockeystick.tradeoffs.profiles.profile import GaussianProfile, Profile, ProfileValues
from tests.privacy_loss.selection.test_tuning import best_of

COUNTS: tuple[tuning.RunCount, ...] = (
    tuning.TruncatedNegativeBinomial(1.0, 0.1),
    tuning.TruncatedNegativeBinomial(0.0, 0.05),
    tuning.TruncatedNegativeBinomial(-0.5, 0.3),
    tuning.TruncatedNegativeBinomial(2.5, 0.2),
    tuning.Poisson(10.0),
    tuning.Poisson(0.5),
    tuning.Binomial(1, 0.3),
    tuning.Binomial(2, 0.9),
    tuning.Binomial(12, 0.8),
)
each_count = pytest.mark.parametrize("count", COUNTS, ids=str)


def known(count: tuning.RunCount) -> Generating:
    found = generating(count)
    assert found is not None
    return found


def of_the_best(count: tuning.RunCount, p: Any, q: Any, growth: float) -> float:
    """H of the best of K draws, outcomes from the worst to the best."""
    with mp.workdps(30):
        best = zip(*(best_of(count, one.tolist()) for one in (p, q)), strict=True)
        return float(mp.fsum(max(a - growth * b, 0) for a, b in best))


def random_pair(seed: int, size: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    p, q = (rng.dirichlet(np.full(size, rng.uniform(0.3, 4.0))) + 1e-6 for _ in range(2))
    p, q = p / p.sum(), q / q.sum()
    order = np.argsort(p / q)
    return p[order], q[order]


def finite(p: Any, q: Any) -> FinitePair:
    below = tuple(np.r_[0.0, np.cumsum(one)] for one in (p, q))
    above = tuple(np.r_[0.0, np.cumsum(one[::-1])][::-1] for one in (p, q))
    return FinitePair(p, q, (below[0], below[1]), (above[0], above[1]), 1e-14)


@each_count
@pytest.mark.parametrize("seed", range(4))
def test_no_order_of_a_few_outcomes_costs_more_than_the_upper_end(
    count: tuning.RunCount, seed: int
) -> None:
    p, q = random_pair(seed, 5)
    ranked = Ranked(finite(p, q).split(1.0 / known(count).steepness, 0.3), known(count))
    for growth in (1.0, 1.7, 5.0, 20.0):
        worst = max(
            of_the_best(count, p[list(order)], q[list(order)], growth)
            for order in permutations(range(5))
        )
        assert worst <= ranked.upper(growth) * (1 + 1e-12)


AT = np.linspace(0.0, 6.0, 61)


def divergence(pair: FinitePair, epsilon: float) -> float:
    return float(np.maximum(pair.p - math.exp(epsilon) * pair.q, 0.0).sum())


def both(profile: GaussianProfile, at: Any) -> tuple[FinitePair, FinitePair]:
    above = FinitePair.of(Knots.above(profile, profile, at))
    below = FinitePair.of(Knots.below(profile, profile, at))
    assert above is not None
    assert below is not None
    return above, below


@pytest.mark.parametrize("mu", [0.05, 0.5, 2.0])
def test_the_pairs_of_a_gaussian_are_on_either_side_of_it(mu: float) -> None:
    profile = GaussianProfile(mu)
    above, below = both(profile, AT * mu)
    for epsilon in np.linspace(-4.5, 4.5, 301) * mu:
        truth = float(profile.at(np.array([abs(epsilon)])).estimate[0])
        if epsilon < 0.0:
            truth = -math.expm1(epsilon) + math.exp(epsilon) * truth
        assert divergence(below, epsilon) <= truth * (1 + 1e-11) + 1e-15
        assert divergence(above, epsilon) >= truth * (1 - 1e-11) - 1e-15
        assert divergence(above, epsilon) - divergence(below, epsilon) < 0.15 * truth


class Uncertain(Profile):
    """The profile of a Gaussian with mu = 1, known to a tenth."""

    supremum = math.inf

    def at(self, epsilon: Any) -> ProfileValues:
        known = GaussianProfile(1.0).at(epsilon)
        return known._replace(lower=0.9 * known.lower, upper=1.1 * known.upper)


def test_points_are_made_of_the_end_that_their_side_asks_for() -> None:
    profile, truth = Uncertain(), GaussianProfile(1.0).at(AT)
    for knots, side in ((Knots.above, 1), (Knots.below, -1)):
        found = knots(profile, profile, AT)
        delta = np.interp(AT, found.loss, found.delta)
        assert (side * (delta - truth.estimate) >= 0.0).all()


def test_pieces_add_up_to_their_outcomes() -> None:
    pair, _ = both(GaussianProfile(1.0), AT)
    fine = pair.split(0.1, 0.02)
    assert fine.p.size == pair.split_size(0.1, 0.02) > pair.p.size
    assert fine.p.sum() == pytest.approx(1.0, rel=1e-12)
    assert fine.q.sum() == pytest.approx(1.0, rel=1e-12)
    for epsilon in (-2.0, 0.0, 1.3):
        assert divergence(fine, epsilon) == pytest.approx(divergence(pair, epsilon), rel=1e-10)


def test_more_than_one_tuning_is_refused() -> None:
    once = hs.mechanisms.RandomStopping(hs.Gaussian(4.0), COUNTS[0])
    for plan in (once**2, once @ hs.Gaussian(3.0), hs.Gaussian(3.0)):
        with pytest.raises(UnsupportedError, match="not one tuning"):
            hs.epsilon(plan, 1e-6, accountant="selection")
