"""Local reports: their distribution, what they cost, and the error of what is estimated."""

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pytest
from scipy.stats import binom, chi2

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
NO_BITS: Final[list[Any]] = [[True], [[0, 1]], [[0.5]], np.zeros((0, 3), dtype=bool)]


def check_error(found: Any, truth: Any, error: Any) -> None:
    """Assert that estimates, in rows, are off by a mean squared error, at the level of RARE."""
    off = (np.array(found) - truth) / np.sqrt(error)
    assert (np.abs(off.mean(axis=0)) < 5.5 / math.sqrt(len(off))).all()
    squares = np.square(off).sum(axis=0)
    assert (squares > chi2.ppf(RARE, len(off))).all()
    assert (squares < chi2.ppf(1 - RARE, len(off))).all()


@pytest.mark.parametrize(
    ("found", "error"),
    [
        (response_error(hs.RandomizedResponse(1.0, 10), 1000, 0.0), 3.63024869291551947543e-3),
        (response_error(hs.RandomizedResponse(1.0, 10), 1000, 0.3), 5.02699278940190289395e-3),
        (response_error(hs.RandomizedResponse(1.0, 10), 1000, 1.0), 8.28606234787013087051e-3),
        (unary_error(UnaryEncoding(1.0, "optimized"), 1000, 0.0), 3.68269437683116927578e-3),
        (unary_error(UnaryEncoding(1.0, "optimized"), 1000, 0.3), 3.98269437683116927578e-3),
        (unary_error(UnaryEncoding(1.0, "symmetric"), 1000, 0.0), 3.91769808903276376e-3),
        (unary_error(UnaryEncoding(1.0, "symmetric"), 1000, 0.6), 3.91769808903276376e-3),
    ],
)
def test_the_errors_have_their_check_values(found: float, error: float) -> None:
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


def test_estimates_by_response_are_off_by_their_error() -> None:
    mechanism, rng = hs.RandomizedResponse(1.0, 4), np.random.default_rng(5)
    data, truth = np.repeat(np.arange(4), [1000, 600, 400, 0]), [0.5, 0.3, 0.2, 0.0]
    found = [
        response_frequencies(mechanism, response_reports(mechanism, data, rng)) for _ in range(400)
    ]
    assert np.sum(found, axis=1) == pytest.approx(np.ones(400), abs=1e-12)
    check_error(found, truth, [response_error(mechanism, 2000, share) for share in truth])


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


@pytest.mark.parametrize("kind", ["symmetric", "optimized"])
def test_unary_bits_and_estimates_follow_the_mechanism(kind: str) -> None:
    mechanism, bits, truth = UnaryEncoding(1.5, kind), seeded(23), [0.7, 0.3, 0.0]
    data = np.repeat(np.arange(3), [700, 300, 0])
    found = [
        unary_frequencies(mechanism, unary_reports(mechanism, data, 3, bits=bits))
        for _ in range(400)
    ]
    check_error(found, truth, [unary_error(mechanism, 1000, share) for share in truth])
    rows = unary_reports(mechanism, np.zeros(200_000, dtype=int), 2, bits=bits)
    p, q = (math.exp(1.5 / 2), 1) if kind == "symmetric" else (math.exp(1.5) / 2 + 0.5, 1)
    total = math.exp(1.5 / 2) + 1 if kind == "symmetric" else math.exp(1.5) + 1
    assert np.abs(rows.mean(axis=0) - [p / total, q / total]).max() < 5 * 0.5 / math.sqrt(200_000)


def test_edges_of_unary_encoding_have_their_answers() -> None:
    sure = UnaryEncoding(math.inf)
    bits = unary_reports(sure, np.array([0, 2]), 3)
    assert bits.tolist() == [[True, False, False], [False, False, True]]
    assert unary_frequencies(sure, bits).tolist() == [0.5, 0.0, 0.5]
    assert unary_error(sure, 10, 0.3) == 0.0
    assert unary_error(UnaryEncoding(math.inf, "optimized"), 10, 0.3) == pytest.approx(0.03)
    for least in (0.0, 1e-200):
        assert unary_error(UnaryEncoding(least), 10, 0.3) == math.inf
    with pytest.raises(hs.errors.ParameterError, match="epsilon must be a number > 0"):
        unary_frequencies(UnaryEncoding(0.0), bits)


@pytest.mark.parametrize("bad", [[3], [-1], [0.5], [[0, 1]], "ab", [math.nan]])
def test_what_is_no_category_is_refused(bad: Any) -> None:
    told = "values must be a row of integers from 0 to 2"
    with pytest.raises(hs.errors.ParameterError, match=told):
        response_reports(THREE, bad, bits=none_left)
    with pytest.raises(hs.errors.ParameterError, match=told):
        unary_reports(UnaryEncoding(1.0), bad, 3, bits=none_left)
    with pytest.raises(hs.errors.ParameterError, match="reports must be a row of integers"):
        response_frequencies(THREE, bad)


def test_what_estimates_are_not_made_of_is_refused() -> None:
    wrong: list[Any] = [
        (lambda: response_frequencies(hs.RandomizedResponse(0.0, 3), np.array([0])), "epsilon"),
        (lambda: response_frequencies(THREE, np.array([], dtype=int)), "reports"),
        (lambda: response_reports(THREE, np.array([0]), 7), "rng"),  # type: ignore[arg-type]
        (lambda: unary_reports(UnaryEncoding(1.0), np.array([0]), 0), "categories"),
        (lambda: rappor_filters(RAPPOR(0.5, 10_001), ["red"], 8), "hashes"),
        (lambda: rappor_error(RAPPOR(0.5, 2), 0, ["red"], 8), "users"),
        (lambda: rappor_reports(RAPPOR(0.5, 2), ["red"], 0, bits=none_left), "size"),
        (lambda: rappor_reports(RAPPOR(0.5, 2), ["red"], 2**20 + 1, bits=none_left), "size"),
        (lambda: rappor_filters(RAPPOR(0.5, 2), ["red"], 3, cohort=-1), "cohort"),
        (lambda: rappor_shares(RAPPOR(1.0, 2), np.array([[True]])), "flip must be a number below"),
        *((lambda flip=flip: rappor_once(RAPPOR(0.5, 2), flip), "flip") for flip in (-0.1, 1.1)),
        *((lambda h=h: response_error(THREE, 10, h), "share") for h in (-0.1, 1.1, math.nan)),
        (lambda: unary_error(UnaryEncoding(1.0), 0, 0.5), "users"),
    ]
    for ask, name in wrong:
        with pytest.raises(hs.errors.ParameterError, match=f"^{name}"):
            ask()


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


def test_reports_of_two_values_are_as_far_apart_as_the_account_says() -> None:
    # Two values that share no bit: all 16 reports of the 4 bits that differ, and their chances.
    noise = RAPPOR(0.5, 2)
    filters = rappor_filters(noise, COLOURS, SIZE)
    pair = next(
        (one, other)
        for one, other in itertools.combinations(filters, 2)
        if int((one ^ other).sum()) == 4
    )
    places = np.flatnonzero(pair[0] ^ pair[1])

    def chance_of(one: Any, key: Any) -> float:
        same = [bool(bit) == seen for bit, seen in zip(one, key, strict=True)]
        return math.prod(0.75 if one else 0.25 for one in same)

    chance = {
        key: [chance_of(one, key) for one in (pair[0][places], pair[1][places])]
        for key in itertools.product([False, True], repeat=4)
    }
    assert max(math.log(p / q) for p, q in chance.values()) == pytest.approx(4.0 * math.log(3.0))
    for epsilon in (0.5, 2.0, 4.0):
        truth = math.fsum(max(p - math.exp(epsilon) * q, 0.0) for p, q in chance.values())
        found = hs.delta(noise, epsilon)
        assert found.lower - 1e-15 <= truth <= found.upper + 1e-15
    users = 20_000
    value = COLOURS[int(np.flatnonzero((filters == pair[0]).all(axis=1))[0])]
    reports = rappor_reports(noise, [value] * users, SIZE, bits=seeded(5))
    counts = Counter(map(tuple, reports[:, places].tolist()))
    statistic = sum((counts[key] - users * p) ** 2 / (users * p) for key, (p, _) in chance.items())
    assert chi2.ppf(RARE, 15) < statistic < chi2.ppf(1 - RARE, 15)


def test_one_instantaneous_report_is_that_of_the_mechanism_named() -> None:
    noise, users = RAPPOR(0.5, 2), 40_000
    once = rappor_once(noise, 0.25)
    assert once == RAPPOR(0.625, 2)
    assert hs.epsilon(once, 0.0).upper < hs.epsilon(noise, 0.0).lower
    kept = rappor_reports(noise, ["red"] * users, SIZE, bits=seeded(1))
    sent = rappor_again(noise, kept, 0.25, bits=seeded(2))
    changed = int((sent ^ rappor_filters(noise, ["red"], SIZE)).sum())
    assert abs(changed - binom.mean(users * SIZE, 0.3125)) < 5 * binom.std(users * SIZE, 0.3125)
    # Of the permanent response an eighth of all bits is changed anew.
    anew = int((sent ^ kept).sum())
    assert abs(anew - binom.mean(users * SIZE, 0.125)) < 5 * binom.std(users * SIZE, 0.125)


@pytest.mark.parametrize(("first", "second"), [(0.1, 0.3), (1e-20, 1e-20), (0.7, 1.0), (0.0, 0.3)])
def test_the_flip_of_two_responses_is_rounded_to_less_privacy(first: float, second: float) -> None:
    exact = 1 - (1 - Fraction(first)) * (1 - Fraction(second))
    found = Fraction(rappor_once(RAPPOR(first, 2), second).flip)
    assert exact * (1 - Fraction(1, 2**52)) <= found <= exact


@pytest.mark.parametrize("again", [0.0, 0.3])
def test_estimates_by_rappor_are_off_by_their_error(again: float) -> None:
    noise, bits, found, shares = RAPPOR(0.4, 2), seeded(23), [], []
    once = rappor_once(noise, again)
    data = ["red"] * 300 + ["blue"] * 150 + ["pink"] * 50
    for _ in range(300):
        kept = rappor_reports(noise, data, SIZE, bits=bits)
        sent = rappor_again(noise, kept, again, bits=bits)
        found.append(rappor_frequencies(once, sent, COLOURS))
        shares.append(rappor_shares(once, sent))
    check_error(found, [0.6, 0.0, 0.3, 0.1], rappor_error(once, len(data), COLOURS, SIZE) ** 2)
    one_bit = once.flip / 2 * (1 - once.flip / 2) / 500 / (1 - once.flip) ** 2
    check_error(shares, rappor_filters(noise, data, SIZE).mean(axis=0), np.full(SIZE, one_bit))


def test_edges_of_rappor_have_their_answers() -> None:
    plain, silent = RAPPOR(0.0, 2), RAPPOR(1.0, 2)
    filters = rappor_filters(plain, COLOURS, SIZE)
    assert np.array_equal(rappor_reports(plain, COLOURS, SIZE), filters)
    assert rappor_error(plain, 10, COLOURS, SIZE).tolist() == [0.0] * 4
    assert rappor_error(silent, 10, COLOURS, SIZE).tolist() == [math.inf] * 4
    coins = rappor_reports(silent, ["red"] * 4000, SIZE, bits=seeded(9))
    assert abs(coins.mean() - 0.5) < 5 * 0.5 / math.sqrt(coins.size)


@pytest.mark.parametrize("bad", [["red", 0.5], [True], [], "red", [["red"]], [None], 3])
def test_what_are_no_values_is_refused_before_coins_are_drawn(bad: Any) -> None:
    with pytest.raises(hs.errors.ParameterError, match="values must be a row of texts"):
        rappor_reports(RAPPOR(0.5, 2), bad, SIZE, bits=none_left)


@pytest.mark.parametrize("bad", NO_BITS)
def test_what_are_no_bits_is_refused(bad: Any) -> None:
    noise = RAPPOR(0.5, 2)
    for ask in (
        lambda: rappor_shares(noise, bad),
        lambda: rappor_again(noise, bad, 0.5, bits=none_left),
        lambda: rappor_frequencies(noise, bad, COLOURS),
        lambda: unary_frequencies(UnaryEncoding(1.0), bad),
    ):
        with pytest.raises(hs.errors.ParameterError, match="reports must be an array of bits"):
            ask()


@pytest.mark.parametrize("values", [["red", "red"], [str(one) for one in range(SIZE + 1)]])
def test_candidates_that_cannot_be_told_apart_are_refused(values: list[str]) -> None:
    with pytest.raises(hs.errors.ParameterError, match="linearly independent"):
        rappor_error(RAPPOR(0.5, 2), 10, values, SIZE)
