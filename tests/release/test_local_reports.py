"""Local reports: their distribution, what they cost, and the error of what is estimated."""

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
    LaplaceMean,
    LocalMean,
    OneBitMean,
    gaussian_error,
    gaussian_mean,
    gaussian_reports,
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


TEN, EVEN = hs.RandomizedResponse(1.0, 10), UnaryEncoding(1.0)
BEST = UnaryEncoding(1.0, "optimized")


@pytest.mark.parametrize(
    ("found", "error"),
    [
        (response_error(TEN, 1000, 0.0), 3.63024869291551947543e-3),
        (response_error(TEN, 1000, 0.3), 5.02699278940190289395e-3),
        (response_error(TEN, 1000, 1.0), 8.28606234787013087051e-3),
        (unary_error(BEST, 1000, 0.0), 3.68269437683116927578e-3),
        (unary_error(BEST, 1000, 0.3), 3.98269437683116927578e-3),
        (unary_error(EVEN, 1000, 0.0), 3.91769808903276376e-3),
        (unary_error(EVEN, 1000, 0.6), 3.91769808903276376e-3),
    ],
)
def test_the_errors_have_their_check_values(found: float, error: float) -> None:
    """The variance of every outcome, in 40 digits."""
    assert found == pytest.approx(error, rel=1e-14)


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
    (lambda bad: response_frequencies(hs.RandomizedResponse(bad, 3), [0]), [0.0], "mechanism"),
    (lambda bad: unary_frequencies(UnaryEncoding(bad), [[True]]), [0.0], "mechanism must be"),
    (lambda bad: response_reports(THREE, [0], bad), [7], "rng"),
    (lambda bad: unary_reports(UNARY, [0], bad), [0], "categories"),
    (lambda bad: rappor_filters(RAPPOR(0.5, bad), ["red"], 8), [10_001], "hashes"),
    (lambda bad: rappor_error(TWO, bad, ["red"], 8), [0], "users"),
    (lambda bad: unary_error(UNARY, bad, 0.5), [0], "users"),
    (lambda bad: rappor_reports(TWO, ["red"], bad, bits=none_left), [0, 2**20 + 1], "size"),
    (lambda bad: rappor_filters(TWO, ["red"], 3, cohort=bad), [-1], "cohort"),
    (lambda bad: rappor_shares(RAPPOR(bad, 2), np.array([[True]])), [1.0], "mechanism must be"),
    (lambda bad: rappor_once(TWO, bad), SHARE, "flip"),
    (lambda bad: response_error(THREE, 10, bad), SHARE, "share"),
]


FIVE: Final = np.array([0.0, 1.0, 1.0, 4.0, 5.0])
each_kind = pytest.mark.parametrize("kind", [OneBitMean, LaplaceMean])


@pytest.mark.parametrize("local", [0.01, 1.0, 9.0])
def test_one_bit_has_the_mean_and_the_error_of_its_two_reports(local: float) -> None:
    mean = OneBitMean(local, 0.0, 5.0)
    with mp.workdps(40):
        tau, error = mp.tanh(mp.mpf(local) / 2), mp.zero
        for value in FIVE:
            y = (mp.mpf(float(value)) - mp.mpf("2.5")) / mp.mpf("2.5")
            ends = [mp.mpf("2.5") * (1 + side / tau) for side in (1, -1)]
            chances = [(1 + side * tau * y) / 2 for side in (1, -1)]
            average = mp.fsum(c * e for c, e in zip(chances, ends, strict=True))
            assert abs(average - mp.mpf(float(value))) < mp.mpf(10) ** -30
            error += mp.fsum(c * (e - average) ** 2 for c, e in zip(chances, ends, strict=True))
        assert mean.error(FIVE) == pytest.approx(float(error / 25), rel=1e-13)


def test_one_bit_is_an_end_that_a_word_decides_and_its_randomized_response() -> None:
    """A quarter of the way up the high end is drawn by the words below a quarter."""
    mean, quarter, sure = OneBitMean(math.log(3), 0.0, 4.0), 2**62, [0, 2**63]
    tau = 0.5
    for word, high in ((quarter - 2**11, True), (quarter, False)):
        found = mean.reports([1.0], bits=replay([word, *sure]))
        assert found.tolist() == pytest.approx([2 + 2 / tau if high else 2 - 2 / tau])
    # The coin of the response has the probability 3/4 of the truth.
    for word, true in ((3 * 2**62 - 2**12, True), (3 * 2**62 + 2**12, False)):
        found = mean.reports([4.0], bits=replay([2**64 - 1, word, 0]))
        assert (found[0] > 2) == true
    assert mean.mechanism == hs.RandomizedResponse(math.log(3), 2)
    assert LaplaceMean(2.0, 0.0, 10.0).mechanism == hs.Laplace(0.5)


@pytest.mark.parametrize("ends", [(0.1, 0.3), (1e9, 1e9 + 1e-3), (1e16, 1e16 + 2.0), (-3.0, 1e-9)])
def test_one_bit_scales_the_ends_of_any_interval_to_one(ends: tuple[float, float]) -> None:
    mean, (low, high) = OneBitMean(30.0, *ends), ends
    between = np.linspace(low, high, 50).clip(low, high)
    scaled = mean._scaled(np.concatenate(([low, high], between)))
    assert scaled[:2].tolist() == [-1.0, 1.0]
    assert np.abs(scaled).max() == 1.0


def test_laplace_noise_is_for_the_whole_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def noted(scale: float, size: int, **_: Any) -> Any:
        asked.append(scale)
        return np.full(size, 2**18)

    monkeypatch.setattr("hockeystick.release.samplers.rounded_laplace", noted)
    # The steps are 2^-20 of the width.
    assert LaplaceMean(2.0, -1.0, 3.0).reports([0.5, 3.0]).tolist() == [1.5, 4.0]
    assert asked == [(2**20 + 1) / 2]


def test_without_noise_numbers_are_reported_or_rounded() -> None:
    assert LaplaceMean(math.inf, 0.0, 5.0).reports(FIVE, bits=none_left).tolist() == FIVE.tolist()
    assert LaplaceMean(math.inf, 0.0, 5.0).error(FIVE) == 0.0
    assert set(OneBitMean(math.inf, 0.0, 5.0).reports(FIVE).tolist()) <= {0.0, 5.0}


@each_kind
def test_what_is_no_randomizer_or_outside_the_interval_is_refused(kind: type[LocalMean]) -> None:
    assert kind(1e-200).error([0.0]) == math.inf
    mean = kind(1.0, 0.0, 5.0)
    values: list[Any] = [[5.1], [-0.1], [math.nan], [], "ab", [[1.0]], [True]]
    for bad in values:
        for ask in (lambda bad=bad: mean.reports(bad), lambda bad=bad: mean.error(bad)):
            with pytest.raises(hs.errors.ParameterError, match="values must be a row of one or"):
                ask()
    ends = [(0.0, 0, 1), (-1.0, 0, 1), (math.nan, 0, 1), (1.0, 1, 1), (1.0, 2, 1), (1, 0, math.inf)]
    for wrong in ends:
        with pytest.raises(hs.errors.ParameterError):
            kind(*wrong)
    with pytest.raises(hs.errors.ParameterError, match="reports"):
        mean.estimate([])


def squared_norm(row: Any) -> Fraction:
    return sum((Fraction(float(one)) ** 2 for one in row), Fraction(0))


@pytest.mark.parametrize("norm", [1.0, 0.1, 3e-7, 2.5e99])
def test_no_clipped_row_is_beyond_the_norm_that_is_accounted(norm: float) -> None:
    rng = np.random.default_rng(11)
    rows = rng.standard_normal((40, 33)) * 10.0 ** rng.uniform(-2, 2, (40, 1)) * norm
    rows[0], rows[1], rows[2] = 0.0, 1e300, 5e-324
    rows[3] = np.eye(33)[7] * norm
    clipped = gaussian_reports(hs.Gaussian(0.0), rows, norm)
    # Half a step of the grid, 2^-20 of twice the norm, in each of 33 entries.
    slack = Fraction(norm) * (1 + Fraction(6, 2**20) + Fraction(1, 2**30))
    assert all(squared_norm(row) <= slack**2 for row in clipped)
    most = Fraction(norm) ** 2 * Fraction(99, 100)
    inside = np.array([squared_norm(row) <= most for row in rows])
    assert 3 < inside.sum() < 37
    assert np.abs(clipped[inside] - rows[inside]).max() <= norm * 2.0**-19
    beyond = [row for row, was_inside in zip(clipped, inside, strict=True) if not was_inside]
    assert all(math.sqrt(squared_norm(row)) > 0.99 * norm for row in beyond)


def test_noise_is_never_below_twice_the_norm_times_the_multiplier() -> None:
    for noise in (0.1, 1.0, 1e4):
        for norm in (0.1, 1.0, 3e7):
            for entries in (1, 2, 1000):
                exact = 2 * Fraction(noise) * Fraction(norm)
                found = Fraction(gaussian_error(hs.Gaussian(noise), 1, norm, entries=entries))
                assert exact < found <= exact * (1 + Fraction(1, 2**15))


USERS = np.repeat(FIVE, 40)
VECTORS = np.stack([np.linspace(-0.5, 0.5, 200), np.linspace(0.3, -0.2, 200)], axis=1)
NOISE = hs.Gaussian(0.8)
MEANS: Any = [
    *((partial(lambda mean, bits: mean.estimate(mean.reports(USERS, bits=bits)), mean),
       FIVE.mean(), mean.error(USERS))
      for mean in (OneBitMean(1.2, 0.0, 5.0), LaplaceMean(1.2, 0.0, 5.0))),
    (lambda bits: gaussian_mean(NOISE, gaussian_reports(NOISE, VECTORS, 1.0, bits=bits)),
     VECTORS.mean(axis=0), gaussian_error(NOISE, 200, 1.0, entries=2) ** 2),
]  # fmt: skip


@pytest.mark.parametrize(("estimate", "truth", "error"), [*ESTIMATES, *MEANS])
def test_estimates_are_off_by_their_error(estimate: Any, truth: Any, error: Any) -> None:
    bits, squared = seeded(23), [error(one) for one in truth] if callable(error) else error
    off = (np.array([estimate(bits) for _ in range(300)]) - truth) / np.sqrt(squared)
    assert (np.abs(off.mean(axis=0)) < 5.5 / math.sqrt(300)).all()
    squares = np.square(off).sum(axis=0)
    assert (squares > chi2.ppf(RARE, 300)).all()
    assert (squares < chi2.ppf(1 - RARE, 300)).all()


ROWS: Any = [[], "ab", [math.nan], [[math.inf]], np.zeros((2, 2, 2)), 3.0, [True], [1j]]
NORMS = [0.0, -1.0, math.nan, math.inf, 1e101]
UNIT = hs.Gaussian(1.0)
NO_MEANS: list[tuple[Any, list[Any], str]] = [
    (lambda bad: gaussian_reports(UNIT, bad, 1.0, bits=none_left), ROWS, "values"),
    (lambda bad: gaussian_mean(UNIT, bad), ROWS, "reports"),
    (lambda bad: gaussian_reports(UNIT, [0.5], bad, bits=none_left), NORMS, "norm"),
    (lambda bad: gaussian_reports(hs.Gaussian(bad), [0.5], 1.0), [math.inf], "mechanism"),
    (lambda bad: gaussian_error(UNIT, 10, 1.0, entries=bad), [0], "entries"),
    (lambda bad: gaussian_error(UNIT, bad, 1.0), [0], "users"),
]


@pytest.mark.parametrize(("ask", "values", "told"), [*REFUSED, *NO_MEANS])
def test_bad_arguments_are_refused_before_bits_are_drawn(ask: Any, values: Any, told: str) -> None:
    for bad in values:
        with pytest.raises(hs.errors.ParameterError, match=f"^{told}"):
            ask(bad)
