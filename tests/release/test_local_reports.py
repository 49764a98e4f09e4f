"""Local reports: their distribution, what they cost, and the error of what is estimated."""

import itertools
import math
from fractions import Fraction
from functools import partial
from typing import Any, Final

import numpy as np
import pytest
from scipy.stats import chi2

import hockeystick as hs
from hockeystick.mechanisms import RAPPOR, UnaryEncoding
from hockeystick.numerics.multiprecision import mp
from hockeystick.release import (
    rappor_again,
    rappor_error,
    rappor_filters,
    rappor_frequencies,
    rappor_once,
    rappor_reports,
    rappor_shares,
    response_error,
    response_frequencies,
    response_reports,
    unary_error,
    unary_frequencies,
    unary_reports,
)
from tests.release.bits import none_left, replay, seeded

SIZE: Final = 24
COLOURS: Final = ["red", "green", "blue", "pink"]
# The bits of "red", written down: a stored report has to mean the same in ten years.
RED: Final = [7, 13, 22]
# The level at which a test by chance fails.
RARE: Final = 1e-6
THREE: Final = hs.RandomizedResponse(1.0, 3)


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


@pytest.mark.parametrize("local", [0.3, 1.0, 7.0])
@pytest.mark.parametrize("categories", [2, 5])
def test_reports_are_true_where_a_uniform_number_is_below_their_probability(
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


def test_reports_have_the_mechanisms_frequencies() -> None:
    response, own = hs.RandomizedResponse(1.0, 4), np.full(100_000, 2)
    counts = np.bincount(response_reports(response, own, bits=seeded(3)), minlength=4)
    odds = math.exp(1.0)
    expected = np.array([1.0, 1.0, odds, 1.0]) / (odds + 3) * len(own)
    assert chi2.sf(float(((counts - expected) ** 2 / expected).sum()), 3) > 1e-4


def test_edges_of_responses_have_their_answers() -> None:
    data, open_ = np.array([0, 1, 2, 2]), hs.RandomizedResponse(math.inf, 3)
    assert response_reports(open_, data, bits=none_left).tolist() == data.tolist()
    assert response_frequencies(open_, data).tolist() == [0.25, 0.25, 0.5]
    assert response_error(open_, 10, 0.3) == 0.0
    assert response_error(hs.RandomizedResponse(0.0, 3), 10, 0.3) == math.inf
    assert response_reports(THREE, np.array([], dtype=int)).size == 0
    for local, share in ((0.0, 1 / 3), (800.0, 1.0)):
        response, own = hs.RandomizedResponse(local, 3), np.full(3000, 1)
        found = response_reports(response, own, bits=seeded(2))
        assert (found == 1).mean() == pytest.approx(share, abs=0.04 if share < 1 else 0.0)


@pytest.mark.parametrize("kind", ["symmetric", "optimized"])
@pytest.mark.parametrize("local", [0.001, 0.7, 6.0])
@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_the_error_is_that_of_its_two_probabilities(kind: str, local: float, share: float) -> None:
    with mp.workdps(40):
        root = mp.exp(mp.mpf(local) / 2)
        p = root / (1 + root) if kind == "symmetric" else mp.mpf(1) / 2
        q = 1 / (1 + root) if kind == "symmetric" else 1 / (1 + root**2)
        truth = (share * p * (1 - p) + (1 - share) * q * (1 - q)) / (40 * (p - q) ** 2)
        found = unary_error(UnaryEncoding(local, kind), 40, share)
        assert found == pytest.approx(float(truth), rel=1e-13)


def test_edges_of_unary_encoding_have_their_answers() -> None:
    sure = UnaryEncoding(math.inf)
    bits = unary_reports(sure, np.array([0, 2]), 3)
    assert bits.tolist() == [[True, False, False], [False, False, True]]
    assert unary_frequencies(sure, bits).tolist() == [0.5, 0.0, 0.5]
    assert unary_error(sure, 10, 0.3) == 0.0
    assert unary_error(UnaryEncoding(math.inf, "optimized"), 10, 0.3) == pytest.approx(0.03)
    for least in (0.0, 1e-200):
        assert unary_error(UnaryEncoding(least), 10, 0.3) == math.inf


def test_a_filter_has_at_most_as_many_bits_as_hashes_and_is_always_the_same() -> None:
    noise = RAPPOR(0.5, 3)
    filters = rappor_filters(noise, COLOURS, SIZE)
    assert filters.shape == (4, SIZE)
    assert (filters.sum(axis=1) <= 3).all()
    assert (filters.sum(axis=1) >= 1).all()
    assert not np.array_equal(filters, rappor_filters(noise, COLOURS, SIZE, cohort=1))
    assert np.flatnonzero(filters[0]).tolist() == RED
    numbers = rappor_filters(noise, np.array([1, 2]), SIZE)
    assert np.array_equal(rappor_filters(noise, ["1", "2"], SIZE), numbers)


@pytest.mark.parametrize("flip", [0.75, 0.1])
def test_a_bit_changes_where_a_word_is_below_half_of_the_flip(flip: float) -> None:
    least = math.ceil(max(Fraction(flip), Fraction(str(flip))) / 2 * 2**64)
    words = [least - 1 if place % 3 == 0 else least for place in range(2 * SIZE)]
    noise, values = RAPPOR(flip, 2), ["red", "blue"]
    kept = rappor_reports(noise, values, SIZE, bits=replay(words))
    changed = kept ^ rappor_filters(noise, values, SIZE)
    assert np.flatnonzero(changed).tolist() == list(range(0, 2 * SIZE, 3))


@pytest.mark.parametrize(("first", "second"), [(0.1, 0.3), (1e-20, 1e-20), (0.7, 1.0), (0.0, 0.3)])
def test_the_flip_of_two_responses_is_rounded_to_less_privacy(first: float, second: float) -> None:
    exact = 1 - (1 - Fraction(first)) * (1 - Fraction(second))
    found = Fraction(rappor_once(RAPPOR(first, 2), second).flip)
    assert exact * (1 - Fraction(1, 2**52)) <= found <= exact


def test_edges_of_rappor_have_their_answers() -> None:
    plain, silent = RAPPOR(0.0, 2), RAPPOR(1.0, 2)
    filters = rappor_filters(plain, COLOURS, SIZE)
    assert np.array_equal(rappor_reports(plain, COLOURS, SIZE), filters)
    assert rappor_error(plain, 10, COLOURS, SIZE).tolist() == [0.0] * 4
    assert rappor_error(silent, 10, COLOURS, SIZE).tolist() == [math.inf] * 4
    coins = rappor_reports(silent, ["red"] * 4000, SIZE, bits=seeded(9))
    assert abs(coins.mean() - 0.5) < 5 * 0.5 / math.sqrt(coins.size)


def by_response(bits: Any) -> Any:
    own, data = hs.RandomizedResponse(1.0, 4), np.repeat(np.arange(4), [1000, 600, 400, 0])
    return response_frequencies(own, response_reports(own, data, bits=bits))


def by_unary(kind: str, bits: Any) -> Any:
    own, data = UnaryEncoding(1.5, kind), np.repeat(np.arange(3), [700, 300, 0])
    return unary_frequencies(own, unary_reports(own, data, 3, bits=bits))


DATA = ["red"] * 300 + ["blue"] * 150 + ["pink"] * 50
TWICE = rappor_once(RAPPOR(0.4, 2), 0.3)


def by_rappor(bits: Any) -> Any:
    kept = rappor_reports(RAPPOR(0.4, 2), DATA, SIZE, bits=bits)
    sent = rappor_again(RAPPOR(0.4, 2), kept, 0.3, bits=bits)
    return np.append(rappor_frequencies(TWICE, sent, COLOURS), rappor_shares(TWICE, sent))


ONE_BIT = TWICE.flip / 2 * (1 - TWICE.flip / 2) / 500 / (1 - TWICE.flip) ** 2
SHARES = rappor_filters(RAPPOR(0.4, 2), DATA, SIZE).mean(axis=0)
ESTIMATES: Any = [
    (
        by_response,
        [0.5, 0.3, 0.2, 0.0],
        lambda share: response_error(hs.RandomizedResponse(1.0, 4), 2000, share),
    ),
    *(
        (
            partial(by_unary, kind),
            [0.7, 0.3, 0.0],
            partial(unary_error, UnaryEncoding(1.5, kind), 1000),
        )
        for kind in ("symmetric", "optimized")
    ),
    (
        by_rappor,
        [0.6, 0.0, 0.3, 0.1, *SHARES],
        [*rappor_error(TWICE, 500, COLOURS, SIZE) ** 2, *np.full(SIZE, ONE_BIT)],
    ),
]


@pytest.mark.parametrize(("estimate", "truth", "error"), ESTIMATES)
def test_estimates_are_off_by_their_error(estimate: Any, truth: Any, error: Any) -> None:
    bits, squared = seeded(23), [error(one) for one in truth] if callable(error) else error
    off = (np.array([estimate(bits) for _ in range(300)]) - truth) / np.sqrt(squared)
    assert (np.abs(off.mean(axis=0)) < 5.5 / math.sqrt(300)).all()
    squares = np.square(off).sum(axis=0)
    assert (squares > chi2.ppf(RARE, 300)).all()
    assert (squares < chi2.ppf(1 - RARE, 300)).all()


TWO, UNARY = RAPPOR(0.5, 2), UnaryEncoding(1.0)
CATEGORIES: Any = [[3], [-1], [0.5], [[0, 1]], "ab", [math.nan]]
TEXTS: Any = [["red", 0.5], [True], [], "red", [["red"]], [None], 3]
BITS: Any = [[True], [[0, 1]], [[0.5]], np.zeros((0, 3), dtype=bool)]
ALIKE: Any = [["red", "red"], [str(one) for one in range(SIZE + 1)]]
SHARE: Any = [-0.1, 1.1, math.nan]
REFUSED: list[tuple[Any, list[Any], str]] = [
    (lambda bad: response_reports(THREE, bad, bits=none_left), CATEGORIES, "values must be a row"),
    (lambda bad: unary_reports(UNARY, bad, 3, bits=none_left), CATEGORIES, "values must be a row"),
    (lambda bad: response_frequencies(THREE, bad), [*CATEGORIES, []], "reports must be"),
    (lambda bad: rappor_reports(TWO, bad, SIZE, bits=none_left), TEXTS, "values must be a row of"),
    (lambda bad: rappor_shares(TWO, bad), BITS, "reports must be an array of bits"),
    (lambda bad: rappor_again(TWO, bad, 0.5, bits=none_left), BITS, "reports must be an array"),
    (lambda bad: rappor_frequencies(TWO, bad, COLOURS), BITS, "reports must be an array of bits"),
    (lambda bad: unary_frequencies(UNARY, bad), BITS, "reports must be an array of bits"),
    (lambda bad: rappor_error(TWO, 10, bad, SIZE), ALIKE, ".*linearly independent"),
    (lambda bad: response_frequencies(hs.RandomizedResponse(bad, 3), [0]), [0.0], "epsilon"),
    (lambda bad: unary_frequencies(UnaryEncoding(bad), [[True]]), [0.0], "epsilon must be .* > 0"),
    (lambda bad: response_reports(THREE, [0], bad), [7], "rng"),
    (lambda bad: unary_reports(UNARY, [0], bad), [0], "categories"),
    (lambda bad: rappor_filters(RAPPOR(0.5, bad), ["red"], 8), [10_001], "hashes"),
    (lambda bad: rappor_error(TWO, bad, ["red"], 8), [0], "users"),
    (lambda bad: unary_error(UNARY, bad, 0.5), [0], "users"),
    (lambda bad: rappor_reports(TWO, ["red"], bad, bits=none_left), [0, 2**20 + 1], "size"),
    (lambda bad: rappor_filters(TWO, ["red"], 3, cohort=bad), [-1], "cohort"),
    (lambda bad: rappor_shares(RAPPOR(bad, 2), np.array([[True]])), [1.0], "flip .* below"),
    (lambda bad: rappor_once(TWO, bad), SHARE, "flip"),
    (lambda bad: response_error(THREE, 10, bad), SHARE, "share"),
]


@pytest.mark.parametrize(("ask", "values", "told"), REFUSED)
def test_bad_arguments_are_refused_before_bits_are_drawn(ask: Any, values: Any, told: str) -> None:
    for bad in values:
        with pytest.raises(hs.errors.ParameterError, match=f"^{told}"):
            ask(bad)
