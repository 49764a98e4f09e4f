"""Selections: what is drawn has the probabilities of the mechanism, and a run ends as it says."""

import itertools
import math
from collections import Counter
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import hockeystick as hs
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms import (
    AboveThreshold,
    PermuteAndFlip,
    RandomStopping,
    ReportNoisyMax,
    SparseVector,
    tuning,
)
from hockeystick.numerics.multiprecision import mp
from hockeystick.release import (
    above_threshold,
    exponential,
    grid_search,
    partition_selection,
    permute_and_flip,
    random_search,
    report_noisy_max,
    sparse_vector,
    users_by_partition,
)
from hockeystick.release.samplers import (
    RealNoise,
    discrete_gaussian,
    discrete_laplace,
    run_count,
    truncated_negative_binomial,
)
from hockeystick.release.samplers.tables import RunSums
from tests.release.bits import none_left, replay, seeded

ALL = [
    (exponential, hs.Exponential, RealNoise.GUMBEL),
    (permute_and_flip, PermuteAndFlip, RealNoise.EXPONENTIAL),
    (report_noisy_max, ReportNoisyMax, RealNoise.GUMBEL),
]
every = pytest.mark.parametrize(("release", "kind", "noise"), ALL)


class Asked:
    """What the comparison of noisy numbers was asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("hockeystick.release.selection.noisy_argmax", self)

    def __call__(self, values: Any, noise: Any, scale: Any, *, bits: Any) -> Any:
        self.values = [Fraction(value) for value in values]
        self.noise, self.scale = noise, scale
        return 0


@every
@settings(max_examples=100)
@given(
    scores=st.lists(st.floats(-1e6, 1e6) | st.integers(-50, 50), min_size=1, max_size=5),
    moves=st.lists(st.floats(-1, 1), min_size=5, max_size=5),
    epsilon=st.floats(1e-3, 50),
    monotone=st.booleans(),
)
def test_ratios_of_probabilities_stay_below_exp_epsilon(
    release: Any, kind: Any, noise: Any, scores: Any, moves: Any, epsilon: Any, monotone: Any
) -> None:
    """In rational arithmetic, of exactly what is compared, for neighbours as far as they may be.

    With the scale b, shifts of all scores by x to y change the log of every ratio of the
    exponential mechanism by at most (y - x) / b; the largest noise moves by as much.
    """
    if monotone:
        moves = [abs(move) for move in moves]
    others = [score + move for score, move in zip(scores, moves, strict=False)]
    gaps = [Fraction(b) - Fraction(a) for a, b in zip(scores, others, strict=True)]
    sensitivity = float(max(*map(abs, gaps), Fraction(1, 2**40)))
    while Fraction(sensitivity) < max(map(abs, gaps)):
        sensitivity = math.nextafter(sensitivity, math.inf)
    asked = []
    with pytest.MonkeyPatch.context() as patch:
        for one in (scores, others):
            found = Asked(patch)
            release(kind(epsilon), one, sensitivity, monotone=monotone)
            asked.append([value / found.scale for value in found.values])
            assert found.noise is noise
    shifts = [b - a for a, b in zip(*asked, strict=True)]
    spread = max(*shifts, Fraction(0)) - min(*shifts, Fraction(0))
    assert spread <= min(Fraction(epsilon), Fraction(repr(epsilon)))


@every
def test_the_scale_is_exact_and_covers_both_readings(
    release: Any, kind: Any, noise: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked(monkeypatch)
    for sensitivity, epsilon in ((0.3, 0.1), (0.1, 0.3)):
        release(kind(epsilon), [0.5, 2], sensitivity)
        least = min(Fraction(epsilon), Fraction(repr(epsilon)))
        most = max(Fraction(sensitivity), Fraction(repr(sensitivity)))
        assert asked.scale / asked.values[1] == most / least
        assert asked.values[0] * 4 == asked.values[1]
        release(kind(epsilon), [0.5, 2], sensitivity, monotone=True)
        assert asked.scale / asked.values[1] == most / least / 2


def exponential_law(scores: Any, epsilon: Any) -> Any:
    weights = np.exp(epsilon * np.array(scores) / 2)
    return weights / weights.sum()


def flipping_law(scores: Any, epsilon: Any) -> Any:
    """Return the probabilities of permute-and-flip by its definition, over all orders."""
    heads = np.exp(epsilon * (np.array(scores) - max(scores)) / 2)
    found = np.zeros(len(scores))
    orders = list(permutations(range(len(scores))))
    for order in orders:
        left = 1.0
        for i in order:
            found[i] += left * heads[i] / len(orders)
            left *= 1 - heads[i]
    return found


def largest_laplace_law(scores: Any, epsilon: Any) -> Any:
    """Return the probabilities of the largest after Laplace noise, by quadrature."""
    b = 2 / epsilon

    def chance(i: Any) -> Any:
        def density(x: Any) -> Any:
            others = [j for j in range(len(scores)) if j != i]
            return stats.laplace.pdf(x, scores[i], b) * np.prod(
                [stats.laplace.cdf(x, scores[j], b) for j in others]
            )

        return float(mp.quad(lambda x: mp.mpf(density(float(x))), [-60, *sorted(scores), 60]))

    return np.array([chance(i) for i in range(len(scores))])


@pytest.mark.parametrize(
    ("release", "mechanism", "law"),
    [
        (exponential, hs.Exponential(1.5), exponential_law),
        (permute_and_flip, PermuteAndFlip(1.5), flipping_law),
        (report_noisy_max, ReportNoisyMax(1.5), exponential_law),
        (report_noisy_max, ReportNoisyMax(1.5, "exponential"), flipping_law),
        (report_noisy_max, ReportNoisyMax(1.5, "laplace"), largest_laplace_law),
    ],
)
def test_candidates_are_selected_with_their_probabilities(
    release: Any, mechanism: Any, law: Any
) -> None:
    scores, bits, count = [0.0, 1.5, 2.0, 2.0], seeded(21), 6000
    drawn = [release(mechanism, scores, 1, bits=bits) for _ in range(count)]
    seen = np.bincount(drawn, minlength=4)
    expected = law(scores, 1.5)
    assert abs(expected.sum() - 1) < 1e-6
    assert stats.chisquare(seen, expected / expected.sum() * count).pvalue > 1e-6


@every
def test_without_epsilon_all_candidates_are_alike(release: Any, kind: Any, noise: Any) -> None:
    bits = seeded(5)
    drawn = [release(kind(0.0), [0, 1e300, -5], 1, bits=bits) for _ in range(3000)]
    assert stats.chisquare(np.bincount(drawn, minlength=3)).pvalue > 1e-6


@every
def test_with_infinite_epsilon_the_first_of_the_best_is_selected(
    release: Any, kind: Any, noise: Any
) -> None:
    assert release(kind(math.inf), [1, 3, 3, 2], 1) == 1
    assert release(kind(math.inf), [0.0], 1) == 0
    assert release(kind(math.inf), [0.0, 0.0], 1) == 0


@every
@pytest.mark.parametrize(
    ("scores", "sensitivity", "epsilon"),
    [
        ([-1e308, 1e308], 1e-300, 1.0),
        ([0.0, 5e-324], 5e-324, 2000.0),
        ([0, 2**53], 1e-9, 1e-3),
        ([-1.7e308, 1.7e308, 0], 5e-324, 1e300),
    ],
)
def test_numbers_at_the_ends_of_floats_are_compared(
    release: Any, kind: Any, noise: Any, scores: Any, sensitivity: Any, epsilon: Any
) -> None:
    assert release(kind(epsilon), scores, sensitivity) == 1
    assert release(kind(5e-324), scores, 1.7e308) in range(len(scores))


TWO_LAPLACE = AboveThreshold(2.0, 4.0)
TWO_GAUSSIAN = AboveThreshold(
    2.0, 4.0, threshold_noise="gaussian", query_noise="gaussian", queries=1000
)
MIXED = AboveThreshold(2.0, 4.0, threshold_noise="gaussian")


def real(word: Any, noise: Any) -> Any:
    """Return the noise of scale 1 of the middle of a word's uniform numbers."""
    u = mp.ldexp(2 * (word >> 1) + 1, -64)
    size = mp.sqrt(2) * mp.erfinv(1 - u) if noise == "gaussian" else -mp.log(u)
    return -size if word & 1 else size


@pytest.mark.parametrize("mechanism", [TWO_LAPLACE, TWO_GAUSSIAN, MIXED])
def test_every_outcome_is_that_of_the_real_sums(mechanism: Any) -> None:
    generator = np.random.default_rng(2)
    for _ in range(12):
        words = [int(w) for w in generator.integers(2**64, size=200, dtype=np.uint64)]
        run = above_threshold(mechanism, 10.5, 1.5, bits=replay(words))
        with mp.workprec(300):
            top = 10.5 + 3 * real(words[0], mechanism.threshold_noise)
            for place in range(1, 200):
                answer = place / 8
                expected = answer + 6 * real(words[place], mechanism.query_noise) >= top
                assert run.above(answer) == expected
                assert run.ended == expected
                if expected:
                    break


def test_a_query_is_above_with_its_probability() -> None:
    """The difference of the two noises, by quadrature."""
    count, bits = 3000, seeded(14)
    seen = sum(above_threshold(TWO_LAPLACE, 3.0, 1.0, bits=bits).above(1.0) for _ in range(count))

    def density(x: Any) -> Any:
        tail = mp.exp(-abs(2 + x) / 4) / 2
        return mp.exp(-abs(x) / 2) / 4 * (tail if x > -2 else 1 - tail)

    p = float(mp.quad(density, [-80, -2, 0, 80]))
    assert abs(seen / count - p) < 5 * math.sqrt(p * (1 - p) / count)


def test_sparse_vector_begins_again_with_a_fresh_threshold() -> None:
    """Words: threshold, query, query (above), threshold, query (above)."""
    half, asked = 2**63, []

    def bits(count: Any) -> Any:
        asked.append(count)
        return np.full(count, half + 2**40 * len(asked), dtype=np.uint64)

    run = sparse_vector(SparseVector(2.0, 4.0, positives=2), 100.0, 1.0, bits=bits)
    assert asked == []
    assert [run.above(answer) for answer in (0.0, 1e4, 1e5)] == [False, True, True]
    assert len(asked) == 5
    assert run.ended
    with pytest.raises(IncompatibleError, match="ended"):
        run.above(1.0)
    assert len(asked) == 5


def test_after_the_first_above_nothing_more_is_said() -> None:
    run = above_threshold(TWO_LAPLACE, 0.0, 1.0)
    assert run.above(1e9)
    with pytest.raises(IncompatibleError):
        run.above(-1e9)


def test_no_more_queries_are_answered_than_the_mechanism_has() -> None:
    run = above_threshold(AboveThreshold(1.0, 1.0, queries=2), 1e9, 1.0)
    assert [run.above(0.0), run.above(0.0)] == [False, False]
    assert run.ended
    two = sparse_vector(SparseVector(1.0, 1.0, positives=2, queries=2), 1e9, 1.0)
    assert [two.above(answer) for answer in (0, 2e9, 0, 0)] == [False, True, False, False]
    assert two.ended


def test_without_positives_nothing_can_be_asked() -> None:
    run = sparse_vector(SparseVector(1.0, 1.0, positives=0), 0.0, 1.0, bits=none_left)
    assert run.ended
    with pytest.raises(IncompatibleError):
        run.above(1.0)


def test_without_noise_numbers_are_compared_as_they_are() -> None:
    run = sparse_vector(SparseVector(0.0, 0.0, positives=3), 0.3, 1.0)
    assert [run.above(x) for x in (math.nextafter(0.3, 0), 0.3, 1)] == [False, True, True]


def test_both_readings_of_the_scales_are_covered(monkeypatch: pytest.MonkeyPatch) -> None:
    scales = []

    class Noted:
        def __init__(self, value: Any, noise: Any, scale: Any, word: Any, bits: Any) -> None:
            scales.append((value, scale))

        def exceeds(self, other: Any) -> bool:
            return True

    monkeypatch.setattr("hockeystick.release.selection.NoisyNumber", Noted)
    above_threshold(AboveThreshold(0.3, 0.1), 0.1, 0.3).above(0.3)
    most = Fraction(3, 10)
    assert scales == [(Fraction(0.1), most * most), (Fraction(0.3), Fraction(0.1) * most)]


@pytest.mark.parametrize(
    ("release", "mechanism"),
    [(above_threshold, TWO_LAPLACE), (sparse_vector, SparseVector(20.0, 40.0, positives=3))],
)
def test_a_run_is_charged_once_before_any_bit(release: Any, mechanism: Any) -> None:
    account = hs.Accountant()
    run = release(mechanism, 100.0, 1.0, charge=account, bits=none_left)
    assert account.plan == mechanism
    assert not run.ended
    run = release(mechanism, 100.0, 1.0, charge=account)
    run.above(0.0)
    run.above(0.0)
    assert len(account) == 2
    spending = hs.calibration.Filter(hs.PureDP(1e-3))
    with pytest.raises(hs.errors.BudgetExhausted):
        release(mechanism, 100.0, 1.0, charge=spending, bits=none_left)


@pytest.mark.parametrize("answer", [math.nan, math.inf, "3", [1.0], None, True])
def test_bad_answers_are_named_and_use_up_nothing(answer: Any) -> None:
    run = above_threshold(AboveThreshold(1.0, 1.0, queries=1), 0.0, 1.0, bits=none_left)
    with pytest.raises(ParameterError, match=r"^answer must be"):
        run.above(answer)
    assert not run.ended


PartitionSelection = hs.mechanisms.PartitionSelection
GAUSSIAN = PartitionSelection(hs.DiscreteGaussian(3.0), 12, partitions=2)
LAPLACE = PartitionSelection(hs.DiscreteLaplace(3.0), 12.5, partitions=2)
COUNTS = {f"key {n:03}": n for n in range(1, 60)}


@pytest.mark.parametrize(
    ("mechanism", "noise"),
    [
        (GAUSSIAN, lambda: discrete_gaussian(3.0, 59, bits=seeded(4))),
        (LAPLACE, lambda: discrete_laplace(3.0, 59, bits=seeded(4))),
    ],
)
def test_what_reaches_the_threshold_is_shown_with_its_noisy_number(
    mechanism: Any, noise: Any
) -> None:
    noisy = dict(zip(COUNTS, (np.arange(1, 60) + noise()).tolist(), strict=True))
    expected = {key: n for key, n in noisy.items() if n >= mechanism.threshold}
    assert 0 < len(expected) < 59
    assert partition_selection(mechanism, COUNTS, bits=seeded(4)) == expected


def test_the_threshold_itself_is_shown_at_its_larger_reading() -> None:
    still = hs.DiscreteGaussian(0.0)
    assert partition_selection(PartitionSelection(still, 5), {"a": 4, "b": 5}) == {"b": 5}
    assert partition_selection(PartitionSelection(still, 4.000000001), {"a": 4}) == {}


def test_the_order_says_nothing_about_the_data() -> None:
    turned = dict(sorted(COUNTS.items(), reverse=True))
    first, second = (
        partition_selection(GAUSSIAN, counts, bits=seeded(5)) for counts in (COUNTS, turned)
    )
    assert list(first) == list(second) == sorted(first)


def test_a_user_alone_is_shown_as_often_as_the_losses_say() -> None:
    from hockeystick.privacy_loss.selection.partition_selection import shown_alone

    said, runs, bits = PartitionSelection(hs.DiscreteLaplace(1.0), 3), 4000, seeded(6)
    seen = sum(bool(partition_selection(said, {"a": 1}, bits=bits)) for _ in range(runs))
    p = float(shown_alone(said.noise, said.threshold)[0])
    assert abs(seen / runs - p) < 5 * (p * (1 - p) / runs) ** 0.5


def test_the_selection_is_charged_before_any_noise_is_drawn() -> None:
    account = hs.Accountant()
    assert partition_selection(GAUSSIAN, {}, charge=account) == {}
    assert account.plan == GAUSSIAN

    class Refusing:
        def step(self, mechanism: Any) -> None:
            assert mechanism == GAUSSIAN
            raise InterruptedError

    with pytest.raises(InterruptedError):
        partition_selection(GAUSSIAN, COUNTS, charge=Refusing(), bits=none_left)


def test_a_user_is_counted_once_in_each_partition() -> None:
    pairs = [("ann", 1), ("bob", 1), ("ann", 1), ("ann", 2), (b"cy", 2)]
    assert users_by_partition(pairs, 2, bits=none_left) == {1: 2, 2: 2}
    assert users_by_partition(np.array([[0, 7], [0, 7], [1, 7]]), 1) == {7: 2}
    assert users_by_partition([], 3) == {}


def test_of_too_many_partitions_each_choice_is_as_likely() -> None:
    runs, bits = 3000, seeded(8)
    pairs = [("ann", key) for key in "abcd"]
    seen = Counter(tuple(sorted(users_by_partition(pairs, 2, bits=bits))) for _ in range(runs))
    assert set(seen) == set(itertools.combinations("abcd", 2))
    p = 1 / 6
    for number in seen.values():
        assert abs(number / runs - p) < 5 * (p * (1 - p) / runs) ** 0.5


def test_whatever_others_do_a_user_changes_at_most_k_counts_by_1() -> None:
    """With the same words for the others, a user who comes last moves k counts by one."""
    others: list[tuple[Any, int]] = [
        (user, (user * step) % 17) for user in range(9) for step in range(1, 8)
    ]
    own = [("new", key) for key in range(10)]
    before = users_by_partition(others, 3, bits=seeded(9))
    after = users_by_partition(others + own, 3, bits=seeded(9))
    moved = {key: after.get(key, 0) - before.get(key, 0) for key in {*before, *after}}
    assert sorted(n for n in moved.values() if n) == [1, 1, 1]


@pytest.mark.parametrize(
    ("name", "mechanism", "users"),
    [
        ("mechanism", PartitionSelection(hs.Gaussian(3.0), 9), {"a": 3}),
        ("mechanism", hs.DiscreteGaussian(3.0), {"a": 3}),
        ("sigma", PartitionSelection(hs.DiscreteGaussian(2.0**50), 9), {"a": 3}),
        ("users", GAUSSIAN, ["a", "b"]),
        ("users", GAUSSIAN, {"a": 0}),
        ("users", GAUSSIAN, {"a": -1}),
        ("users", GAUSSIAN, {"a": 1.5}),
        ("users", GAUSSIAN, {"a": True}),
        ("users", GAUSSIAN, {"a": 3, 1: 3}),
        ("users", GAUSSIAN, {float("nan"): 3, 1.0: 3}),
        ("users", GAUSSIAN, {frozenset("a"): 3, frozenset("b"): 3}),
        ("users", GAUSSIAN, {"a": 2**63}),
    ],
)
def test_arguments_are_refused_by_name_without_a_charge(
    name: str, mechanism: Any, users: Any
) -> None:
    account = hs.Accountant()
    with pytest.raises(ParameterError) as caught:
        partition_selection(mechanism, users, charge=account, bits=none_left)
    assert caught.value.name == name
    assert account.plan == hs.Accountant().plan


@pytest.mark.parametrize("pairs", ["ab", 3, {"a": 1}, ["ab"], [("a",)], [("a", 1, 2)], [("a", [])]])
def test_pairs_are_refused_by_name(pairs: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        users_by_partition(pairs, 1)
    assert caught.value.name == "pairs"


@pytest.mark.parametrize("partitions", [0, 1.5, Fraction(1, 2), "2"])
def test_the_number_of_partitions_is_refused_by_name(partitions: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        users_by_partition([], partitions)
    assert caught.value.name == "partitions"


def test_of_too_many_partitions_a_user_counts_in_as_many_as_are_allowed() -> None:
    for allowed in (1, 2):
        counted = users_by_partition([("ann", key) for key in "abc"], allowed)
        assert sum(counted.values()) == allowed


RUN = hs.Gaussian(noise_multiplier=5)
LAWS = [(1.0, 0.5), (1.0, 0.05), (0.0, 0.2), (-0.5, 0.1), (2.5, 0.3), (1e-12, 0.2)]


def mass(eta: float, gamma: float, k: int) -> Any:
    """Return the probability of k by gamma functions, not by the recurrence."""
    with mp.workdps(60):
        e, g = mp.mpf(eta), mp.mpf(gamma)
        if eta == 0.0:
            return (1 - g) ** k / (k * -mp.log(g))
        rising = mp.gamma(k + e) / mp.gamma(e) / mp.factorial(k)
        return (1 - g) ** k * rising / (g**-e - 1)


@pytest.mark.parametrize(("eta", "gamma"), LAWS)
def test_sums_are_bounded_on_both_sides_and_closely(eta: float, gamma: float) -> None:
    sums, total = RunSums(Fraction(eta), Fraction(gamma), 64), mp.mpf(0)
    with mp.workdps(60):
        for k in range(1, 60):
            total += mass(eta, gamma, k)
            low, high = sums.around(k)
            assert low <= total * 2**64 <= high
            assert high - low <= 2


@pytest.mark.parametrize(("eta", "gamma"), LAWS)
def test_numbers_have_the_law(eta: float, gamma: float, chi_square: Any) -> None:
    bits = seeded(5)
    drawn = np.array([truncated_negative_binomial(eta, gamma, bits=bits) for _ in range(2000)])
    assert drawn.min() >= 1
    assert chi_square(drawn, lambda k: float(mass(eta, gamma, k))) > 1e-4


def test_a_number_next_to_a_boundary_asks_for_more_bits() -> None:
    """With eta 1 and gamma 1/2, K = 1 exactly for u < 1/2, whatever the bits that follow."""
    half = 2**63
    assert truncated_negative_binomial(1.0, 0.5, bits=replay([half, 5])) == 2
    assert truncated_negative_binomial(1.0, 0.5, bits=replay([half - 1, 2**64 - 2, 0])) == 1
    assert truncated_negative_binomial(1.0, 0.5, bits=replay([2**64 - 1, half + 2])) == 66


def test_the_best_of_a_random_number_of_runs_has_its_law() -> None:
    """P(best is 0) = E[(1 - p)^K], by the generating function, for a run that is 1 with p."""
    law, p, draws = tuning.TruncatedNegativeBinomial(eta=0.0, gamma=0.2), 0.3, 4000
    bits, coins = seeded(3), np.random.default_rng(3)

    def run(_candidate: object) -> tuple[bool, bool]:
        found = bool(coins.random() < p)
        return found, found

    tuned = RandomStopping(RUN, law)
    outputs = [random_search(tuned, ["only"], run, bits=bits) for _ in range(draws)]
    zeros = sum(not best.output for best in outputs if best)
    none = math.log1p(-(1 - 0.2) * (1 - p)) / math.log(0.2)
    assert stats.binomtest(zeros, draws, none).pvalue > 1e-4


def test_candidates_are_drawn_alike() -> None:
    tuned, seen = RandomStopping(RUN, tuning.Poisson(mean=3000)), Counter[str]()

    def run(candidate: str) -> tuple[None, float]:
        seen[candidate] += 1
        return None, 0.0

    random_search(tuned, ["a", "b", "b"], run, bits=seeded(8))
    assert abs(seen.total() - 3000) < 6 * math.sqrt(3000)
    assert stats.binomtest(seen["a"], seen.total(), 1 / 3).pvalue > 1e-4


def test_all_is_charged_before_the_first_run() -> None:
    account = hs.Accountant()
    tuned = RandomStopping(RUN, tuning.TruncatedNegativeBinomial(eta=1, gamma=0.2))

    def run(_candidate: object) -> tuple[str, float]:
        assert account.plan == tuned
        return "model", 1.0

    best = random_search(tuned, [1, 2], run, charge=account)
    assert best is not None
    assert (best.output, best.mechanism) == ("model", tuned)
    assert hs.epsilon(account.plan, 1e-5).upper == hs.epsilon(tuned, 1e-5).upper


def test_a_grid_charges_every_candidate_even_where_a_run_fails() -> None:
    account = hs.Accountant()

    def run(candidate: int) -> tuple[int, float]:
        if candidate == 2:
            raise KeyboardInterrupt
        return candidate, 0.0

    with pytest.raises(KeyboardInterrupt):
        grid_search(RUN, [1, 2, 3], run, charge=account)
    assert account.plan == RUN**3


def test_the_best_of_a_grid_is_the_first_of_the_largest() -> None:
    scores = {1: math.nan, 2: 5.0, 3: 7.0, 4: 7.0}
    best = grid_search(RUN, list(scores), lambda one: (-one, scores[one]))
    assert (best.candidate, best.output, best.score) == (3, -3, 7.0)
    assert best.mechanism == RUN**4


def test_no_run_is_no_result() -> None:
    tuned = RandomStopping(RUN, tuning.Poisson(mean=1e-9))
    assert random_search(tuned, [1], lambda _: pytest.fail("it ran"), bits=seeded(1)) is None


def test_poisson_counts_come_from_the_exact_sampler() -> None:
    drawn = [run_count(tuning.Poisson(mean=4), bits=seeded(k)) for k in range(300)]
    assert stats.binomtest(sum(k <= 4 for k in drawn), 300, 0.62883694).pvalue > 1e-4


def test_binomial_counts_are_heads_of_exact_coins_of_the_float(chi_square: Any) -> None:
    law = tuning.Binomial(trials=6, probability=0.4)
    bits = seeded(11)
    drawn = np.array([run_count(law, bits=bits) for _ in range(2000)])
    assert chi_square(drawn, lambda k: float(stats.binom.pmf(k, 6, 0.4))) > 1e-4
    # A word that agrees with the float's bits is decided by the next one; 3/4 by the first.
    sure = tuning.Binomial(trials=2, probability=0.75)
    assert run_count(sure, bits=replay([3 * 2**62 - 1, 3 * 2**62])) == 1
    tiny = tuning.Binomial(trials=1, probability=2.0**-65)
    assert run_count(tiny, bits=replay([0, 2**63 - 1])) == 1
    assert run_count(tiny, bits=replay([0, 2**63])) == 0
    with pytest.raises(ParameterError, match=r"^trials must be an integer from 1"):
        run_count(tuning.Binomial(2**24 + 1, 1e-9), bits=none_left)


@pytest.mark.parametrize("found", [None, 0.5, (1, 2, 3), ("model", "good"), ("model", None)])
def test_what_a_run_returns_is_checked_and_not_shown(found: Any) -> None:
    with pytest.raises(ParameterError, match="output, score") as raised:
        grid_search(RUN, [1], lambda _: found)
    assert "model" not in str(raised.value)
    assert "good" not in str(raised.value)


def test_a_distribution_that_cannot_be_drawn_is_refused_before_the_charge() -> None:
    account = hs.Accountant()
    tuned = RandomStopping(RUN, tuning.Poisson(mean=2.0**31))
    with pytest.raises(ParameterError, match="mean"):
        random_search(tuned, [1], lambda _: (1, 1.0), charge=account, bits=none_left)
    assert account.plan == hs.Accountant().plan
    with pytest.raises(ParameterError, match="distribution"):
        run_count("geometric")  # type: ignore[arg-type]


@pytest.mark.parametrize("score", [10**400, -(10**400), "private", 1j, [17.5]])
def test_a_score_that_is_no_float_is_refused_without_being_shown(score: Any) -> None:
    tuned = RandomStopping(RUN, tuning.TruncatedNegativeBinomial(1.0, 0.5))
    searches: Any = ((grid_search, RUN), (random_search, tuned))
    for search, mechanism in searches:
        with pytest.raises(ParameterError, match=r"^run must be a pair.* score of") as told:
            search(mechanism, [1, 2], lambda one: (one, score))
        assert str(score) not in str(told.value)
