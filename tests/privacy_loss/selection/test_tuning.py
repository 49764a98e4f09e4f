"""The best of a random number of runs: its bounds against the best one's own distribution."""

import math
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.mechanisms.selection.tuning import (
    Binomial,
    Poisson,
    RunCount,
    TruncatedNegativeBinomial,
)
from hockeystick.numerics import Ball
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import (
    CGFEstimate,
    GaussianLoss,
    ProfiledLoss,
    RandomizedResponsePairLoss,
    dominating_pair,
)
from hockeystick.privacy_loss.selection.tuning import (
    BinomialTuningLoss,
    TruncatedTuningLoss,
    profile_upper,
    tuned,
)

GEOMETRIC = TruncatedNegativeBinomial(1.0, 0.1)
COUNTS: tuple[RunCount, ...] = (
    GEOMETRIC,
    TruncatedNegativeBinomial(0.0, 0.02),
    TruncatedNegativeBinomial(-0.5, 0.3),
    TruncatedNegativeBinomial(2.5, 0.4),
    Poisson(10.0),
    Poisson(1.0),
    Poisson(0.2),
    Binomial(3, 0.95),
    Binomial(40, 0.3),
)
ORDERS = (0.05, 0.5, 2.0, 9.0, 60.0)
each_count = pytest.mark.parametrize("count", COUNTS, ids=str)


def generating(count: RunCount, x: Any) -> Any:
    """E[x^K], from the definitions."""
    if isinstance(count, Poisson):
        return mp.exp(mp.mpf(count.mean) * (x - 1))
    if isinstance(count, Binomial):
        return (1 - mp.mpf(count.probability) * (1 - x)) ** count.trials
    assert isinstance(count, TruncatedNegativeBinomial)
    eta, gamma = mp.mpf(count.eta), mp.mpf(count.gamma)
    if eta == 0:
        return mp.log(1 - (1 - gamma) * x) / mp.log(gamma)
    return ((1 - (1 - gamma) * x) ** -eta - 1) / (gamma**-eta - 1)


def best_of(count: RunCount, masses: Any) -> list[Any]:
    """The distribution of the largest of K draws, outcomes rising, and of no draw at all."""
    below, found = mp.zero, [generating(count, mp.zero)]
    for mass in masses:
        found.append(generating(count, below + mass) - generating(count, below))
        below += mass
    return found


def moment(pair: Any, c: float) -> Any:
    """K(c) of two distributions."""
    p, q = pair
    return mp.log(mp.fsum(a * (a / b) ** c for a, b in zip(p, q, strict=True) if a))


def upper(loss: Any, c: float) -> float:
    found = loss.cgf_bounds(c)
    return float(found.midpoint + found.radius)


@each_count
@pytest.mark.parametrize("epsilon", [0.01, 0.7, 3.0])
def test_the_best_of_randomized_responses_is_within_the_bound_in_every_order(
    count: RunCount, epsilon: float
) -> None:
    pair = dominating_pair(
        hs.mechanisms.RandomStopping(hs.RandomizedResponse(epsilon, categories=3), count)
    )
    with mp.workdps(40):
        grown = mp.exp(mp.mpf(epsilon))
        outcomes = [(grown, mp.one), (mp.one, grown), (mp.one, mp.one)]
        for order in permutations(outcomes):
            p, q = ([one[side] / (grown + 2) for one in order] for side in (0, 1))
            best = best_of(count, p), best_of(count, q)
            for c in ORDERS:
                assert moment(best, c) <= upper(pair.removing, c)
                assert moment(best[::-1], c) <= upper(pair.adding, c)


@pytest.mark.parametrize("count", [Binomial(3, 0.95), Binomial(40, 0.3)], ids=str)
@pytest.mark.parametrize("c", [0.1, 3.0, 50.0])
def test_no_rank_above_a_line_of_the_profile_costs_more_than_its_ends(
    count: Binomial, c: float
) -> None:
    # The chances of better outputs are a, at most e^epsilon a + delta with the other data set.
    loss = tuned(count, ((GaussianLoss(1.0), 1),), ((GaussianLoss(1.0), 1),))
    assert isinstance(loss, BinomialTuningLoss)
    p, a = count.probability, np.linspace(0.0, 1.0, 1001)
    for epsilon, delta in ((0.0, 0.0), (0.0, 0.4), (0.2, 0.1), (1.5, 0.1), (4.0, 0.9), (0.5, 1.0)):
        other = np.minimum(math.exp(epsilon) * a + delta, 1.0)
        worst = float(((1 + c) * np.log1p(-p * a) - c * np.log1p(-p * other)).max())
        found = loss._larger_end(c, epsilon, delta)
        assert worst <= found * (1 + 1e-12) <= worst + 0.01 * c


@pytest.mark.parametrize("count", COUNTS[:4], ids=str)
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 4.0])
def test_the_best_of_pure_runs_is_pure(count: RunCount, epsilon: float) -> None:
    assert isinstance(count, TruncatedNegativeBinomial)
    loss = dominating_pair(hs.mechanisms.RandomStopping(hs.PureDP(epsilon), count)).removing
    assert isinstance(loss, TruncatedTuningLoss)
    by_runs = epsilon - (1 + count.eta) * math.log(count.gamma)
    least = min((2 + count.eta) * epsilon, by_runs)
    assert epsilon < loss.supremum <= least * (1 + 1e-14)
    for c in ORDERS:
        assert upper(loss, c) <= upper(RandomizedResponsePairLoss(loss.supremum), c) * (1 + 1e-14)


def test_geometric_stopping_of_pure_runs_costs_three_times_as_much_as_liu_and_talwar_say() -> None:
    best = hs.mechanisms.RandomStopping(hs.PureDP(0.5), GEOMETRIC)
    assert 1.5 <= hs.epsilon(best, 0.0).upper <= 1.5 * (1 + 1e-13)


def test_of_both_directions_each_has_its_own_bound() -> None:
    run = hs.PoissonSubsampled(hs.Gaussian(1.0), 0.1)
    best = dominating_pair(hs.mechanisms.RandomStopping(run, GEOMETRIC))
    once = dominating_pair(run)
    assert isinstance(best.removing, TruncatedTuningLoss)
    assert isinstance(best.adding, TruncatedTuningLoss)
    assert best.removing.terms == ((once.removing, 1),)
    assert best.adding.terms == ((once.adding, 1),)
    # The shift of each is by the other direction's divergences, and removing is the worse one.
    assert best.removing.shift < best.adding.shift


@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.4, 2.0])
def test_the_delta_that_the_poisson_bound_rests_on_is_that_of_the_run(epsilon: float) -> None:
    gaussians = (hs.Gaussian(3.0) ** 5 @ hs.Gaussian(7.0), hs.Gaussian(1.3))
    for plan in (*gaussians, hs.Laplace(0.7), hs.PureDP(0.3)):
        loss: Any = dominating_pair(hs.mechanisms.RandomStopping(plan, Poisson(4))).removing
        truth = hs.delta(plan, epsilon)
        found = profile_upper(loss.reverse, epsilon)
        assert truth.lower <= found <= truth.upper * (1 + 1e-12) + 1e-300
    steps = hs.PoissonSubsampled(hs.Gaussian(1.1), 0.02) ** 300
    many: Any = dominating_pair(hs.mechanisms.RandomStopping(steps, Poisson(4))).removing
    found = profile_upper(many.terms, epsilon)
    by_orders = hs.delta(steps, epsilon, accountant="rdp").upper
    assert hs.delta(steps, epsilon).lower <= found <= by_orders * (1 + 1e-9)


@dataclass(frozen=True, slots=True)
class Outcomes(ProfiledLoss):
    """The loss of any two distributions over a few outcomes."""

    p: tuple[float, ...]
    q: tuple[float, ...]

    @property
    def supremum(self) -> float:
        return max(math.log(a / b) for a, b in zip(self.p, self.q, strict=True)) + 1e-14

    def cgf_estimate(self, c: float) -> CGFEstimate:
        p, loss = np.array(self.p), np.log(np.array(self.p) / np.array(self.q))
        weight = p * np.exp(c * (loss - loss.max()))
        value = math.log(weight.sum()) + c * loss.max()
        weight /= weight.sum()
        slope = float((weight * loss).sum())
        return CGFEstimate(value, slope, float((weight * (loss - slope) ** 2).sum()))

    def cgf_bounds(self, c: float) -> Ball:
        value = self.cgf_estimate(c).value
        return Ball(value, 1e-12 * (1.0 + c))

    def delta(self, epsilon: Any, perturbation: int = 0) -> Any:
        """The sum of what P has more than e^epsilon times Q."""
        grown = mp.exp(epsilon)
        return mp.fsum(max(mp.mpf(a) - grown * b, 0) for a, b in zip(self.p, self.q, strict=True))


@each_count
@pytest.mark.parametrize("rare", [1e-6, 1e-3, 0.1])
def test_the_bound_holds_where_one_direction_loses_far_more_than_the_other(
    count: RunCount, rare: float
) -> None:
    for often in (0.02, 0.3, 0.7):
        p, q = (1.0 - rare * often, rare * often), (1.0 - often, often)
        one, other = ((Outcomes(p, q), 1),), ((Outcomes(q, p), 1),)
        with mp.workdps(40):
            for way in (1, -1):
                best = [best_of(count, [mp.mpf(x) for x in masses[::way]]) for masses in (p, q)]
                for c in (1e-4, 1e-2, 0.1, 1.0, 6.0):
                    assert moment(best, c) <= upper(tuned(count, one, other), c)
                    assert moment(best[::-1], c) <= upper(tuned(count, other, one), c)
