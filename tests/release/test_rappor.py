"""Reports by RAPPOR: their distribution, what they cost, and the error of what is estimated."""

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pytest
from scipy.stats import binom, chi2

import hockeystick as hs
from hockeystick.mechanisms import RAPPOR
from hockeystick.release import (
    rappor_again,
    rappor_error,
    rappor_filters,
    rappor_frequencies,
    rappor_once,
    rappor_reports,
    rappor_shares,
)
from tests.release.bits import none_left, replay, seeded

SIZE: Final = 24
COLOURS: Final = ["red", "green", "blue", "pink"]
# The bits of "red", written down: a stored report has to mean the same in ten years.
RED: Final = [7, 13, 22]
# The level at which a test by chance fails.
RARE: Final = 1e-6


def test_a_filter_has_at_most_as_many_bits_as_hashes_and_is_always_the_same() -> None:
    noise = RAPPOR(0.5, 3)
    filters = rappor_filters(noise, COLOURS, SIZE)
    assert filters.shape == (4, SIZE)
    assert (filters.sum(axis=1) <= 3).all()
    assert (filters.sum(axis=1) >= 1).all()
    assert np.array_equal(filters, rappor_filters(noise, COLOURS, SIZE))
    assert not np.array_equal(filters, rappor_filters(noise, COLOURS, SIZE, cohort=1))
    assert np.flatnonzero(filters[0]).tolist() == RED
    assert np.array_equal(
        rappor_filters(noise, ["1", "2"], SIZE), rappor_filters(noise, np.array([1, 2]), SIZE)
    )


@pytest.mark.parametrize("flip", [0.75, 0.1])
def test_a_bit_changes_where_a_word_is_below_half_of_the_flip(flip: float) -> None:
    least = math.ceil(max(Fraction(flip), Fraction(str(flip))) / 2 * 2**64)
    words = [least - 1 if place % 3 == 0 else least for place in range(2 * SIZE)]
    noise, values = RAPPOR(flip, 2), ["red", "blue"]
    changed = rappor_reports(noise, values, SIZE, bits=replay(words)) ^ rappor_filters(
        noise, values, SIZE
    )
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
    chance = {
        key: [
            math.prod(
                0.75 if bool(bit) == seen else 0.25 for bit, seen in zip(one, key, strict=True)
            )
            for one in (pair[0][places], pair[1][places])
        ]
        for key in itertools.product([False, True], repeat=4)
    }
    assert max(math.log(p / q) for p, q in chance.values()) == pytest.approx(4.0 * math.log(3.0))
    for epsilon in (0.5, 2.0, 4.0):
        truth = math.fsum(max(p - math.exp(epsilon) * q, 0.0) for p, q in chance.values())
        found = hs.delta(noise, epsilon)
        assert found.lower <= truth + 1e-15
        assert truth <= found.upper + 1e-15
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
def test_estimates_are_off_by_their_error_at_the_level_of_one_in_a_million(again: float) -> None:
    noise, rounds = RAPPOR(0.4, 2), 300
    once = rappor_once(noise, again)
    data = ["red"] * 300 + ["blue"] * 150 + ["pink"] * 50
    truth = np.array([0.6, 0.0, 0.3, 0.1])
    filters = rappor_filters(noise, data, SIZE).mean(axis=0)
    found, shares = [], []
    bits = seeded(23)
    for _ in range(rounds):
        kept = rappor_reports(noise, data, SIZE, bits=bits)
        sent = rappor_again(noise, kept, again, bits=bits)
        found.append(rappor_frequencies(once, sent, COLOURS))
        shares.append(rappor_shares(once, sent))
    error = rappor_error(once, len(data), COLOURS, SIZE)
    one_bit = math.sqrt(once.flip / 2 * (1 - once.flip / 2) / 500) / (1 - once.flip)
    for estimates, centre, width in (
        (np.array(found), truth, error),
        (np.array(shares), filters, np.full(SIZE, one_bit)),
    ):
        off = (estimates - centre) / width
        assert (np.abs(off.mean(axis=0)) < 5.5 / math.sqrt(rounds)).all()
        squares = np.square(off).sum(axis=0)
        assert (squares > chi2.ppf(RARE, rounds)).all()
        assert (squares < chi2.ppf(1 - RARE, rounds)).all()


def test_edges_have_their_answers() -> None:
    plain, silent = RAPPOR(0.0, 2), RAPPOR(1.0, 2)
    filters = rappor_filters(plain, COLOURS, SIZE)
    assert np.array_equal(rappor_reports(plain, COLOURS, SIZE), filters)
    assert rappor_error(plain, 10, COLOURS, SIZE).tolist() == [0.0] * 4
    assert rappor_error(silent, 10, COLOURS, SIZE).tolist() == [math.inf] * 4
    coins = rappor_reports(silent, ["red"] * 4000, SIZE, bits=seeded(9))
    assert abs(coins.mean() - 0.5) < 5 * 0.5 / math.sqrt(coins.size)
    with pytest.raises(hs.errors.ParameterError, match="flip must be a number below 1"):
        rappor_shares(silent, coins)


@pytest.mark.parametrize("bad", [["red", 0.5], [True], [], "red", [["red"]], [None], 3])
def test_what_are_no_values_is_refused_before_coins_are_drawn(bad: Any) -> None:
    with pytest.raises(hs.errors.ParameterError, match="values must be a row of texts"):
        rappor_reports(RAPPOR(0.5, 2), bad, SIZE, bits=none_left)


@pytest.mark.parametrize("bad", [[True], [[0, 1]], [[0.5]], np.zeros((0, 3), dtype=bool)])
def test_what_are_no_bits_is_refused(bad: Any) -> None:
    noise = RAPPOR(0.5, 2)
    for ask in (
        lambda: rappor_shares(noise, bad),
        lambda: rappor_again(noise, bad, 0.5, bits=none_left),
        lambda: rappor_frequencies(noise, bad, COLOURS),
    ):
        with pytest.raises(hs.errors.ParameterError, match="reports must be an array of bits"):
            ask()


@pytest.mark.parametrize("values", [["red", "red"], [str(one) for one in range(SIZE + 1)]])
def test_candidates_that_cannot_be_told_apart_are_refused(values: list[str]) -> None:
    with pytest.raises(hs.errors.ParameterError, match="linearly independent"):
        rappor_error(RAPPOR(0.5, 2), 10, values, SIZE)


def test_numbers_outside_their_domains_are_refused() -> None:
    for arguments in ({"size": 0}, {"size": 2**20 + 1}, {"size": 3, "cohort": -1}):
        with pytest.raises(hs.errors.ParameterError):
            rappor_reports(RAPPOR(0.5, 2), ["red"], bits=none_left, **arguments)
    with pytest.raises(hs.errors.ParameterError, match="hashes"):
        rappor_filters(RAPPOR(0.5, 10_001), ["red"], 8)
    for flip in (-0.1, 1.1, math.nan):
        with pytest.raises(hs.errors.ParameterError, match="flip"):
            rappor_once(RAPPOR(0.5, 2), flip)
    with pytest.raises(hs.errors.ParameterError, match="users"):
        rappor_error(RAPPOR(0.5, 2), 0, ["red"], 8)
