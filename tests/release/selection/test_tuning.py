"""Searches: as many runs as the law says, all charged before the first, the best one released."""

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

import hockeystick as hs
from hockeystick.errors import ParameterError
from hockeystick.mechanisms import RandomStopping, tuning
from hockeystick.numerics.multiprecision import mp
from hockeystick.release import grid_search, random_search
from hockeystick.release.samplers import run_count, truncated_negative_binomial
from hockeystick.release.samplers.tables import RunSums
from tests.release.bits import none_left, replay, seeded

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
