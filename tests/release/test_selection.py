"""Selections: what is drawn has the probabilities of the mechanism, and a run ends as it says."""

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

import hockeystick as hs
from hockeystick import mechanisms as m
from hockeystick.errors import IncompatibleError, ParameterError
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
from tests.release.bits import chi_square, exact, none_left, replay, seeded

ALL = [
    (exponential, hs.Exponential, RealNoise.GUMBEL),
    (permute_and_flip, m.PermuteAndFlip, RealNoise.EXPONENTIAL),
    (report_noisy_max, m.ReportNoisyMax, RealNoise.GUMBEL),
]
every = pytest.mark.parametrize(("release", "kind", "noise"), ALL)


class Asked:
    """What the comparison of noisy numbers was asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("hockeystick.release.samplers.noisy_argmax", self)

    def __call__(self, values: Any, noise: Any, scale: Any, *, bits: Any) -> Any:
        self.values = [Fraction(value) for value in values]
        self.noise, self.scale = noise, scale
        return 0


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
        assert asked.noise is noise
        release(kind(epsilon), [0.5, 2], sensitivity, monotone=True)
        assert asked.scale / asked.values[1] == most / least / 2


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


TWO_LAPLACE = m.AboveThreshold(2.0, 4.0)
TWO_GAUSSIAN = m.AboveThreshold(
    2.0, 4.0, threshold_noise="gaussian", query_noise="gaussian", queries=1000
)
MIXED = m.AboveThreshold(2.0, 4.0, threshold_noise="gaussian")


@pytest.mark.parametrize("mechanism", [TWO_LAPLACE, TWO_GAUSSIAN, MIXED])
def test_every_outcome_is_that_of_the_real_sums(mechanism: Any) -> None:
    generator = np.random.default_rng(2)
    for _ in range(12):
        words = [int(w) for w in generator.integers(2**64, size=200, dtype=np.uint64)]
        run = above_threshold(mechanism, 10.5, 1.5, bits=replay(words))
        with mp.workprec(300):
            top = 10.5 + 3 * exact(mechanism.threshold_noise, words[0])
            for place in range(1, 200):
                answer = place / 8
                expected = answer + 6 * exact(mechanism.query_noise, words[place]) >= top
                assert run.above(answer) == expected
                assert run.ended == expected
                if expected:
                    break


def test_sparse_vector_begins_again_with_a_fresh_threshold() -> None:
    """Words: threshold, query, query (above), threshold, query (above)."""
    half, asked = 2**63, []

    def bits(count: Any) -> Any:
        asked.append(count)
        return np.full(count, half + 2**40 * len(asked), dtype=np.uint64)

    run = sparse_vector(m.SparseVector(2.0, 4.0, positives=2), 100.0, 1.0, bits=bits)
    assert asked == []
    assert [run.above(answer) for answer in (0.0, 1e4, 1e5)] == [False, True, True]
    assert len(asked) == 5
    assert run.ended
    with pytest.raises(IncompatibleError, match="ended"):
        run.above(1.0)
    assert len(asked) == 5


def test_no_more_queries_are_answered_than_the_mechanism_has() -> None:
    run = above_threshold(TWO_LAPLACE, 0.0, 1.0)
    assert run.above(1e9)
    with pytest.raises(IncompatibleError):
        run.above(-1e9)
    run = above_threshold(m.AboveThreshold(1.0, 1.0, queries=2), 1e9, 1.0)
    assert [run.above(0.0), run.above(0.0)] == [False, False]
    assert run.ended
    two = sparse_vector(m.SparseVector(1.0, 1.0, positives=2, queries=2), 1e9, 1.0)
    assert [two.above(answer) for answer in (0, 2e9, 0, 0)] == [False, True, False, False]
    assert two.ended


def test_without_positives_nothing_can_be_asked() -> None:
    run = sparse_vector(m.SparseVector(1.0, 1.0, positives=0), 0.0, 1.0, bits=none_left)
    assert run.ended
    with pytest.raises(IncompatibleError):
        run.above(1.0)


def test_without_noise_numbers_are_compared_as_they_are() -> None:
    run = sparse_vector(m.SparseVector(0.0, 0.0, positives=3), 0.3, 1.0)
    assert [run.above(x) for x in (math.nextafter(0.3, 0), 0.3, 1)] == [False, True, True]


def test_both_readings_of_the_scales_are_covered(monkeypatch: pytest.MonkeyPatch) -> None:
    scales = []

    class Noted:
        def __init__(self, value: Any, noise: Any, scale: Any, word: Any, bits: Any) -> None:
            scales.append((value, scale))

        def exceeds(self, other: Any) -> bool:
            return True

    monkeypatch.setattr("hockeystick.release.selection.NoisyNumber", Noted)
    above_threshold(m.AboveThreshold(0.3, 0.1), 0.1, 0.3).above(0.3)
    most = Fraction(3, 10)
    assert scales == [(Fraction(0.1), most * most), (Fraction(0.3), Fraction(0.1) * most)]


@pytest.mark.parametrize("answer", [math.nan, math.inf, "3", [1.0], None, True])
def test_bad_answers_are_named_and_use_up_nothing(answer: Any) -> None:
    run = above_threshold(m.AboveThreshold(1.0, 1.0, queries=1), 0.0, 1.0, bits=none_left)
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
    account = hs.Accountant()
    assert partition_selection(GAUSSIAN, {}, charge=account) == {}
    assert account.plan == GAUSSIAN


def test_a_user_is_counted_once_in_each_partition() -> None:
    pairs = [("ann", 1), ("bob", 1), ("ann", 1), ("ann", 2), (b"cy", 2)]
    assert users_by_partition(pairs, 2, bits=none_left) == {1: 2, 2: 2}
    assert users_by_partition(np.array([[0, 7], [0, 7], [1, 7]]), 1) == {7: 2}
    assert users_by_partition([], 3) == {}


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


USERS: Any = [
    *(["a", "b"], {"a": 0}, {"a": -1}, {"a": 1.5}, {"a": True}, {"a": 3, 1: 3}, {"a": 2**63}),
    *({float("nan"): 3, 1.0: 3}, {frozenset("a"): 3, frozenset("b"): 3}),
]
PAIRS: Any = ["ab", 3, {"a": 1}, ["ab"], [("a",)], [("a", 1, 2)], [("a", [])]]
SCORES: Any = [10**400, -(10**400), "private", 1j, [17.5], None]
RESULTS: Any = [None, 0.5, (1, 2, 3), *(("model", score) for score in SCORES)]
STOPPING = m.RandomStopping(hs.Gaussian(5), m.tuning.TruncatedNegativeBinomial(1.0, 0.5))
REFUSED: list[tuple[Any, list[Any], str]] = [
    (lambda bad: partition_selection(GAUSSIAN, bad, bits=none_left), USERS, "users"),
    (lambda bad: users_by_partition(bad, 1), PAIRS, "pairs"),
    (lambda bad: users_by_partition([], bad), [0, 1.5, Fraction(1, 2), "2"], "partitions"),
    (lambda bad: grid_search(hs.Gaussian(5), [1], lambda _: bad), RESULTS, "run"),
    (lambda bad: random_search(STOPPING, [1], lambda _: bad), RESULTS, "run"),
    (run_count, ["geometric"], "distribution"),
    (lambda bad: run_count(m.tuning.Binomial(bad, 1e-9), bits=none_left), [2**24 + 1], "trials"),
]


@pytest.mark.parametrize(("ask", "values", "name"), REFUSED)
def test_bad_arguments_are_refused_by_name(ask: Any, values: Any, name: str) -> None:
    """And without being shown where they may be private."""
    for bad in values:
        with pytest.raises(ParameterError) as caught:
            ask(bad)
        assert caught.value.name == name
        assert not any(word in str(caught.value) for word in ("model", "private", "17.5", "0000"))


def test_of_too_many_partitions_a_user_counts_in_as_many_as_are_allowed() -> None:
    for allowed in (1, 2):
        counted = users_by_partition([("ann", key) for key in "abc"], allowed)
        assert sum(counted.values()) == allowed


RUN = hs.Gaussian(noise_multiplier=5)
LAWS = [(1.0, 0.05), (0.0, 0.2), (-0.5, 0.1), (2.5, 0.3), (1e-12, 0.2)]


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


@pytest.mark.parametrize(("eta", "gamma"), LAWS[:3])
def test_numbers_have_the_law(eta: float, gamma: float) -> None:
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


def test_candidates_are_drawn_alike() -> None:
    tuned, seen = m.RandomStopping(RUN, m.tuning.Poisson(mean=3000)), Counter[str]()

    def run(candidate: str) -> tuple[None, float]:
        seen[candidate] += 1
        return None, 0.0

    random_search(tuned, ["a", "b", "b"], run, bits=seeded(8))
    assert abs(seen.total() - 3000) < 6 * math.sqrt(3000)
    assert stats.binomtest(seen["a"], seen.total(), 1 / 3).pvalue > 1e-4


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
    tuned = m.RandomStopping(RUN, m.tuning.Poisson(mean=1e-9))
    assert random_search(tuned, [1], lambda _: pytest.fail("it ran"), bits=seeded(1)) is None


def test_binomial_counts_are_heads_of_exact_coins_of_the_float() -> None:
    # A word that agrees with the float's bits is decided by the next one; 3/4 by the first.
    sure = m.tuning.Binomial(trials=2, probability=0.75)
    assert run_count(sure, bits=replay([3 * 2**62 - 1, 3 * 2**62])) == 1
    tiny = m.tuning.Binomial(trials=1, probability=2.0**-65)
    assert run_count(tiny, bits=replay([0, 2**63 - 1])) == 1
    assert run_count(tiny, bits=replay([0, 2**63])) == 0
