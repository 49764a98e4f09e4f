"""Reports by randomized response: their distribution, and the error of what is estimated."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import chi2

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.release import response_error, response_frequencies, response_reports
from tests.release.bits import replay, seeded


@pytest.mark.parametrize(
    ("share", "error"),
    [
        (0.0, 3.63024869291551947543e-3),
        (0.3, 5.02699278940190289395e-3),
        (1.0, 8.28606234787013087051e-3),
    ],
)
def test_the_error_has_its_check_values(share: float, error: float) -> None:
    found = response_error(hs.RandomizedResponse(1.0, 10), 1000, share)
    assert found == pytest.approx(error, rel=1e-14)


@pytest.mark.parametrize("local", [0.01, 1.0, 5.0])
@pytest.mark.parametrize("categories", [2, 3, 7])
def test_the_error_is_the_variance_of_every_outcome(local: float, categories: int) -> None:
    # One category among n = 5 users, of whom 2 hold it: a sum of binomials, in 40 digits.
    with mp.workdps(40):
        odds = mp.exp(mp.mpf(local))
        low = 1 / (odds + categories - 1)
        mean = second = mp.zero
        for bits in itertools.product((0, 1), repeat=5):
            weight = mp.one
            for user, bit in enumerate(bits):
                p = odds * low if user < 2 else low
                weight *= p if bit else 1 - p
            h = (mp.mpf(sum(bits)) / 5 * (odds + categories - 1) - 1) / (odds - 1)
            mean += weight * h
            second += weight * (h - mp.mpf("0.4")) ** 2
        assert abs(mean - mp.mpf("0.4")) < mp.mpf(10) ** -30
        found = response_error(hs.RandomizedResponse(local, categories), 5, 0.4)
        assert found == pytest.approx(float(second), rel=1e-13)


def test_the_first_term_alone_is_right_where_nobody_holds_it_or_there_are_two_categories() -> None:
    local, users = 1.0, 1000
    for categories, share, same in ((10, 0.0, True), (2, 0.7, True), (10, 0.3, False)):
        first = (math.e + categories - 2) / (users * math.expm1(local) ** 2)
        found = response_error(hs.RandomizedResponse(local, categories), users, share)
        assert (found == pytest.approx(first, rel=1e-12)) is same


def test_reports_of_a_category_follow_the_mechanism_at_the_level_of_one_in_a_million() -> None:
    categories, users, rng = 6, 200_000, np.random.default_rng(11)
    mechanism = hs.RandomizedResponse(1.3, categories)
    reports = response_reports(mechanism, np.full(users, 2), rng)
    weights = np.where(np.arange(categories) == 2, math.exp(1.3), 1.0)
    expected = users * weights / weights.sum()
    statistic = (np.square(np.bincount(reports, minlength=categories) - expected) / expected).sum()
    assert chi2.ppf(1e-6, categories - 1) < statistic < chi2.ppf(1 - 1e-6, categories - 1)


def test_estimates_are_off_by_their_error() -> None:
    mechanism, rng = hs.RandomizedResponse(1.0, 4), np.random.default_rng(5)
    users, rounds = 2000, 400
    data = np.repeat(np.arange(4), [1000, 600, 400, 0])
    found = np.array(
        [
            response_frequencies(mechanism, response_reports(mechanism, data, rng))
            for _ in range(rounds)
        ]
    )
    assert found.sum(axis=1) == pytest.approx(np.ones(rounds), abs=1e-12)
    for k, share in enumerate((0.5, 0.3, 0.2, 0.0)):
        error = response_error(mechanism, users, share)
        # Means within 5 standard errors; mean squares within what chi-square allows at 1e-6.
        assert abs(found[:, k].mean() - share) < 5.0 * math.sqrt(error / rounds)
        statistic = float(np.square(found[:, k] - share).sum()) / error
        assert chi2.ppf(1e-6, rounds) < statistic < chi2.ppf(1 - 1e-6, rounds)


def test_edges_have_their_answers() -> None:
    rng, data = np.random.default_rng(3), np.array([0, 1, 2, 2])
    open_ = hs.RandomizedResponse(math.inf, 3)
    assert response_reports(open_, data, rng).tolist() == data.tolist()
    assert response_frequencies(open_, data).tolist() == [0.25, 0.25, 0.5]
    assert response_error(open_, 10, 0.3) == 0.0
    assert response_error(hs.RandomizedResponse(0.0, 3), 10, 0.3) == math.inf
    assert response_reports(open_, np.array([], dtype=int), rng).size == 0
    with pytest.raises(hs.errors.ParameterError, match="epsilon must be a number > 0"):
        response_frequencies(hs.RandomizedResponse(0.0, 3), data)


@pytest.mark.parametrize("bad", [[3], [-1], [0.5], [[0, 1]], "ab", [math.nan]])
def test_what_is_no_category_is_refused(bad: object) -> None:
    mechanism = hs.RandomizedResponse(1.0, 3)
    with pytest.raises(
        hs.errors.ParameterError, match="values must be a row of integers from 0 to 2"
    ):
        response_reports(mechanism, bad, np.random.default_rng(1))  # type: ignore[arg-type]
    with pytest.raises(hs.errors.ParameterError, match="reports must be a row of integers"):
        response_frequencies(mechanism, bad)  # type: ignore[arg-type]


def test_no_report_is_no_estimate() -> None:
    with pytest.raises(hs.errors.ParameterError, match="at least one report"):
        response_frequencies(hs.RandomizedResponse(1.0, 3), np.array([], dtype=int))


def test_shares_and_numbers_outside_their_domains_are_refused() -> None:
    for users, share in ((0, 0.5), (10, -0.1), (10, 1.1), (10, math.nan)):
        with pytest.raises(hs.errors.ParameterError):
            response_error(hs.RandomizedResponse(1.0), users, share)


@pytest.mark.parametrize("local", [0.3, 1.0, 7.0])
@pytest.mark.parametrize("categories", [2, 5])
def test_exact_reports_are_true_where_a_uniform_number_is_below_their_probability(
    local: float, categories: int
) -> None:
    """The words next to it too, where further bits decide: u is value 2^-64 and more."""
    with mp.workprec(300):
        exact = mp.exp(local) / (mp.exp(local) + categories - 1)
        cell = int(mp.floor(mp.ldexp(exact, 64)))
        next_cell = int(mp.floor(mp.ldexp(exact, 128))) - (cell << 64)
    response, own = hs.RandomizedResponse(local, categories), np.array([1])
    # The first word is the coin's, those that it needs besides come next, the last is the other's.
    for words, true in (
        ([cell - 1, 0], True),
        ([cell + 1, 0], False),
        ([cell, next_cell - 1, 0], True),
        ([cell, next_cell + 1, 0], False),
    ):
        found = response_reports(response, own, bits=replay(words))
        assert found.tolist() == ([1] if true else [0])


def test_exact_reports_have_the_mechanisms_frequencies() -> None:
    response, own = hs.RandomizedResponse(1.0, 4), np.full(100_000, 2)
    counts = np.bincount(response_reports(response, own, bits=seeded(3)), minlength=4)
    odds = math.exp(1.0)
    expected = np.array([1.0, 1.0, odds, 1.0]) / (odds + 3) * len(own)
    assert chi2.sf(float(((counts - expected) ** 2 / expected).sum()), 3) > 1e-4


@pytest.mark.parametrize(("local", "shares"), [(0.0, 1 / 3), (800.0, 1.0), (math.inf, 1.0)])
def test_exact_reports_at_the_edges(local: float, shares: float) -> None:
    response, own = hs.RandomizedResponse(local, 3), np.full(3000, 1)
    found = response_reports(response, own, bits=seeded(2))
    assert (found == 1).mean() == pytest.approx(shares, abs=0.04 if shares < 1 else 0.0)
