"""Selections of partitions and of candidates, against enumeration and their formulas."""

import math
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.numerics.rounding import as_mpf
from hockeystick.privacy_loss import LaplaceLoss, RandomizedResponsePairLoss, dominating_pair
from hockeystick.privacy_loss.core.outcomes import OutcomesLoss
from hockeystick.privacy_loss.core.symmetrized import DominatedLoss
from hockeystick.privacy_loss.selection.exponential import RangeProfile
from hockeystick.privacy_loss.selection.partition_selection import blocks, shown_alone

PartitionSelection = hs.mechanisms.PartitionSelection


# The largest delta of one user's two partitions over data with 0, 1, 3, 6 or 40 others in each, by
# the products of the distributions of what is seen; at epsilon = 0, 0.2, 0.7, 1.5 and 3.
@pytest.mark.parametrize(
    ("noise", "threshold", "costs"),
    [
        (
            hs.DiscreteLaplace(1.2),
            7,
            (0.395541404288, 0.373799755463, 0.301083362212, 0.074593247286, 0.0093714375746),
        ),
        (
            hs.DiscreteGaussian(2.0),
            6,
            (0.273549162059, 0.207798180711, 0.081985632562, 0.0228521774418, 0.0228521774418),
        ),
        (
            hs.DiscreteLaplace(0.8),
            3,
            (0.568809028551, 0.543619174662, 0.504322300151, 0.381924127934, 0.123538281683),
        ),
    ],
)
def test_no_data_exceed_one_run_and_some_reach_it(
    noise: Any, threshold: int, costs: tuple[float, ...]
) -> None:
    said = PartitionSelection(noise, threshold, partitions=2)
    for epsilon, cost in zip((0.0, 0.2, 0.7, 1.5, 3.0), costs, strict=True):
        answer = hs.delta(said, epsilon=epsilon)
        assert answer.lower * (1 - 1e-7) <= cost <= answer.upper * (1 + 1e-9)
        assert answer.upper <= answer.lower * (1 + 1e-6)


# By quadrature of densities, and sums of masses, in 40 digits.
@pytest.mark.parametrize(
    ("noise", "threshold", "known"),
    [
        (hs.Gaussian(3.0), 12.3, "0.00008272082682566032133713024"),
        (hs.Laplace(2.0), 17.0, "0.0001677313139512559194106946"),
        (hs.Laplace(2.0), 0.3, "0.6476559551406432828225897"),
        (hs.DiscreteGaussian(3.0), 12.3, "0.0000588163018359043969997735"),
        (hs.DiscreteGaussian(0.4), 4.0, "5.609009516244432807090668e-13"),
        (hs.DiscreteLaplace(2.0), 17.0, "0.0002088118430074141151202247"),
        (hs.DiscreteLaplace(2.0), 0.0, "0.7710100090855120117572999"),
    ],
)
def test_a_user_alone_is_shown_with_this_probability(
    noise: Any, threshold: float, known: str
) -> None:
    low, high = shown_alone(noise, threshold)
    with mp.workdps(30):
        assert as_mpf(low) <= mp.mpf(known) * (1 + mp.mpf(10) ** -20)
        assert mp.mpf(known) * (1 - mp.mpf(10) ** -20) <= as_mpf(high)
        assert float(high) <= float(low) * (1 + 1e-14)


@pytest.mark.parametrize("k", [1, 2, 8, 9, 30, 1000, 10**9])
def test_every_number_of_partitions_is_in_one_block(k: int) -> None:
    found = list(blocks(k))
    assert found[0] == (0, 0)
    assert found[-1] == (k, k)
    assert [least for least, _ in found[1:]] == [most + 1 for _, most in found[:-1]]
    assert len(found) <= 9 if k <= 8 else len(found) < 30


@pytest.mark.parametrize(
    ("said", "epsilon", "delta"),
    [
        # Counts without noise are the data themselves.
        (PartitionSelection(hs.Gaussian(0.0), 5), math.inf, 1.0),
        # Only that a user who is alone is shown by chance tells anything.
        (PartitionSelection(hs.Gaussian(math.inf), 5), math.inf, 0.5),
        (PartitionSelection(hs.DiscreteLaplace(math.inf), 5, 2), math.inf, 0.75),
        # A far threshold hides whoever is alone: the noise is what it costs.
        (PartitionSelection(hs.Gaussian(4.0), 1e9), None, None),
        (PartitionSelection(hs.Gaussian(4.0), 1e6), None, None),
        # Of so many partitions one is shown, but for a chance that is no float.
        (PartitionSelection(hs.Gaussian(0.5), 1.0, 1100), math.inf, 1.0),
    ],
)
def test_edge_cases(said: Any, epsilon: float | None, delta: float | None) -> None:
    noise = hs.Gaussian(4.0)
    known = hs.epsilon(noise, delta=1e-5).upper if epsilon is None else epsilon
    assert hs.epsilon(said, delta=1e-5).upper == pytest.approx(known, rel=1e-12)
    share = hs.delta(noise, epsilon=1.0).upper if delta is None else delta
    assert hs.delta(said, epsilon=1.0).upper == pytest.approx(share, rel=1e-12)


def flipped(scores: Any, epsilon: float) -> list[Any]:
    """Return permute-and-flip's probabilities for scores of sensitivity 1, over all orders."""
    best, size = max(scores), len(scores)
    coin = [mp.exp(mp.mpf(epsilon) * (score - best) / 2) for score in scores]
    found = [mp.zero] * size
    for order in permutations(range(size)):
        left = mp.one / math.factorial(size)
        for place in order:
            found[place] += left * coin[place]
            left *= 1 - coin[place]
    return found


def loss_of(mechanism: hs.Mechanism) -> DominatedLoss:
    removing, adding = dominating_pair(mechanism)
    assert removing is adding
    assert isinstance(removing, DominatedLoss)
    return removing


@pytest.mark.parametrize("epsilon", [1e-9, 0.015, 1.0, 60.0, 800.0])
def test_two_candidates_that_change_places_are_the_lower_loss_of_flips(epsilon: float) -> None:
    attained = loss_of(hs.mechanisms.PermuteAndFlip(epsilon)).attained
    assert isinstance(attained, RandomizedResponsePairLoss)
    with mp.workdps(400):
        better, worse = flipped([1, 0], epsilon)
        truth = mp.log(better / worse)
        assert truth * (1 - 1e-12) <= attained.epsilon <= truth
    assert attained.epsilon < epsilon


# The log odds of two candidates, by quadrature.
@pytest.mark.parametrize(
    ("epsilon", "truth"),
    [
        (1e-3, 0.0004999999895885399847789),
        (0.4, 0.1994509143839167482428),
        (1.9, 0.9187066095632011712152),
        (2.1, 1.010778454000278555805),
        (6.0, 2.712601796096578085685),
    ],
)
def test_two_candidates_that_change_places_are_the_lower_loss_of_laplace_noise(
    epsilon: float, truth: float
) -> None:
    loss = loss_of(hs.mechanisms.ReportNoisyMax(epsilon, "laplace"))
    assert isinstance(loss.dominating, LaplaceLoss)
    assert isinstance(loss.attained, RandomizedResponsePairLoss)
    assert truth * (1 - 1e-6) <= loss.attained.epsilon <= truth
    if epsilon > 0.02:
        assert loss.attained.epsilon >= truth * (1 - 1e-12)


@pytest.mark.parametrize("epsilon", [0.015, 1.0, 60.0])
def test_flips_cost_at_most_what_two_candidates_attain(epsilon: float) -> None:
    rng = np.random.default_rng(1)
    with mp.workdps(60):
        for share in (0.0, 0.3, 0.9):
            odds = mp.exp(share * epsilon)
            known = loss_of(hs.mechanisms.PermuteAndFlip(epsilon)).closed_form_profile
            assert known is not None
            most = known(mp.mpf(share * epsilon))
            p, q = flipped([1 - share, 0], epsilon)[0], flipped([-share, 1], epsilon)[0]
            assert p - odds * q == pytest.approx(float(most), rel=1e-12)
            for _ in range(9):
                scores, moves = rng.uniform(0, 2, 4), rng.choice([-1, 1], 4)
                both = zip(flipped(scores + moves, epsilon), flipped(scores, epsilon), strict=True)
                assert sum(max(p - odds * q, 0) for p, q in both) <= most


@pytest.mark.parametrize("epsilon", [0.015, 1.0, 60.0])
def test_one_candidate_that_falls_is_told_from_the_others_with_laplace_noise(
    epsilon: float,
) -> None:
    (told,) = loss_of(hs.mechanisms.ReportNoisyMax(epsilon, "laplace")).also_attained
    assert isinstance(told, OutcomesLoss)
    (_, (p, q)) = told.masses
    with mp.workdps(60):

        def beaten(noise: Any) -> Any:
            """Return the chance that 16 others' noise, two sensitivities above, is less."""
            at = noise - epsilon
            return (
                mp.exp(-abs(noise)) / 2 * (mp.exp(at) / 2 if at < 0 else 1 - mp.exp(-at) / 2) ** 16
            )

        moved = mp.quad(beaten, [-60, 0, epsilon, epsilon + 5, epsilon + 60])
        assert p == Fraction(1, 17)
        assert moved <= as_mpf(q) <= moved * (1 + 1e-5)


@pytest.mark.parametrize("end", [0.1, 1.0, 4.0])
@pytest.mark.parametrize(("rate", "removing"), [(1.0, True), (0.2, True), (0.2, False)])
def test_two_selections_cost_what_a_search_of_the_first_finds(
    end: float, rate: float, removing: bool
) -> None:
    ends = RangeProfile.of(end, 2, rate, removing)
    assert ends is not None
    tried = np.linspace(0.0, end, 41)

    def searched(at: float, then: Any) -> float:
        """Return the largest mean of ``then`` at what epsilon leaves, over pairs of outcomes."""
        found = []
        for t in tried:
            q = math.expm1(end - t) / math.expm1(end)
            parts = [(q, 1 + rate * math.expm1(t)), (1 - q, 1 + rate * math.expm1(t - end))]
            if removing:
                found.append(sum(q * m * then(at - math.log(m)) for q, m in parts))
            else:
                found.append(sum(q * then(at + math.log(m)) for q, m in parts))
        return float(max(found))

    def once(at: float) -> float:
        return searched(at, lambda left: max(1 - math.exp(left), 0.0))

    for share in (0.0, 0.3, 0.8):
        epsilon = share * math.log1p(rate * math.expm1(end))
        best = searched(epsilon, once)
        lower, upper = (float(ends.delta(mp.mpf(epsilon), side)) for side in (-1, 1))
        assert 0.88 * best <= lower <= best * (1 + 1e-3)
        assert best * (1 - 1e-9) <= upper <= best * (1 + 1e-2) + 1e-200


@pytest.mark.parametrize("inner", [hs.Exponential(1.0), hs.mechanisms.PermuteAndFlip(1.0)])
def test_samples_cost_at_least_what_two_candidates_do(inner: Any) -> None:
    """The two exchange their odds with the example, whose sample is all that they depend on."""
    odds = math.exp(0.5) if isinstance(inner, hs.Exponential) else 2 * math.exp(0.5) - 1
    p, q = odds / (1 + odds), 1 / (1 + odds)
    mixed = 0.3 * p + 0.7 * q
    runs = [(mixed, q), (1 - mixed, 1 - q)]
    truth = math.fsum(
        max(a * b * c - 1.2 * d * e * f, 0.0) for (a, d), (b, e), (c, f) in product(runs, repeat=3)
    )
    for sampled in (hs.PoissonSubsampled(inner, 0.3), hs.FixedSizeSubsampled(inner, 3, 10)):
        assert hs.delta(sampled**3, math.log(1.2)).lower >= truth * (1 - 1e-3)
