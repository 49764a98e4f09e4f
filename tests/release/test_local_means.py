"""Means of what people randomize themselves: unbiased, off by their error, as private as said."""

import math
from fractions import Fraction
from functools import partial
from typing import Any, Final

import numpy as np
import pytest
from scipy.stats import chi2

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.release import (
    LaplaceMean,
    LocalMean,
    OneBitMean,
    gaussian_error,
    gaussian_mean,
    gaussian_reports,
)
from tests.release.bits import none_left, replay, seeded

DATA: Final = np.array([0.0, 1.0, 1.0, 4.0, 5.0])
RARE: Final = 1e-6
each_kind = pytest.mark.parametrize("kind", [OneBitMean, LaplaceMean])


@pytest.mark.parametrize("local", [0.01, 1.0, 9.0])
def test_one_bit_has_the_mean_and_the_error_of_its_two_reports(local: float) -> None:
    mean = OneBitMean(local, 0.0, 5.0)
    with mp.workdps(40):
        tau, error = mp.tanh(mp.mpf(local) / 2), mp.zero
        for value in DATA:
            y = (mp.mpf(float(value)) - mp.mpf("2.5")) / mp.mpf("2.5")
            ends = [mp.mpf("2.5") * (1 + side / tau) for side in (1, -1)]
            chances = [(1 + side * tau * y) / 2 for side in (1, -1)]
            average = mp.fsum(c * e for c, e in zip(chances, ends, strict=True))
            assert abs(average - mp.mpf(float(value))) < mp.mpf(10) ** -30
            error += mp.fsum(c * (e - average) ** 2 for c, e in zip(chances, ends, strict=True))
        assert mean.error(DATA) == pytest.approx(float(error / 25), rel=1e-13)


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

    monkeypatch.setattr("hockeystick.release.local_means.rounded_laplace", noted)
    # The steps are 2^-20 of the width.
    assert LaplaceMean(2.0, -1.0, 3.0).reports([0.5, 3.0]).tolist() == [1.5, 4.0]
    assert asked == [(2**20 + 1) / 2]


def test_without_noise_numbers_are_reported_or_rounded() -> None:
    assert LaplaceMean(math.inf, 0.0, 5.0).reports(DATA, bits=none_left).tolist() == DATA.tolist()
    assert LaplaceMean(math.inf, 0.0, 5.0).error(DATA) == 0.0
    assert set(OneBitMean(math.inf, 0.0, 5.0).reports(DATA).tolist()) <= {0.0, 5.0}


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
    """The exact square of a row's norm."""
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


USERS = np.repeat(DATA, 40)
VECTORS = np.stack([np.linspace(-0.5, 0.5, 200), np.linspace(0.3, -0.2, 200)], axis=1)
NOISE = hs.Gaussian(0.8)
ESTIMATES: Any = [
    *((partial(lambda mean, bits: mean.estimate(mean.reports(USERS, bits=bits)), mean),
       DATA.mean(), math.sqrt(mean.error(USERS)))
      for mean in (OneBitMean(1.2, 0.0, 5.0), LaplaceMean(1.2, 0.0, 5.0))),
    (lambda bits: gaussian_mean(NOISE, gaussian_reports(NOISE, VECTORS, 1.0, bits=bits)),
     VECTORS.mean(axis=0), gaussian_error(NOISE, 200, 1.0, entries=2)),
]  # fmt: skip


@pytest.mark.parametrize(("estimate", "truth", "error"), ESTIMATES)
def test_estimates_are_off_by_their_error(estimate: Any, truth: Any, error: Any) -> None:
    bits = seeded(31)
    off = (np.array([estimate(bits) for _ in range(300)]) - truth) / error
    assert (np.abs(off.mean(axis=0)) < 5.0 / math.sqrt(300)).all()
    squares = np.square(off).sum(axis=0)
    assert (squares > chi2.ppf(RARE, 300)).all()
    assert (squares < chi2.ppf(1 - RARE, 300)).all()


ROWS: Any = [[], "ab", [math.nan], [[math.inf]], np.zeros((2, 2, 2)), 3.0, [True], [1j]]
NORMS = [0.0, -1.0, math.nan, math.inf, 1e101]
ONE = hs.Gaussian(1.0)
REFUSED: list[tuple[Any, list[Any], str]] = [
    (lambda bad: gaussian_reports(ONE, bad, 1.0, bits=none_left), ROWS, "values"),
    (lambda bad: gaussian_mean(ONE, bad), ROWS, "reports"),
    (lambda bad: gaussian_reports(ONE, [0.5], bad, bits=none_left), NORMS, "norm"),
    (lambda bad: gaussian_reports(hs.Gaussian(bad), [0.5], 1.0), [math.inf], "mechanism"),
    (lambda bad: gaussian_error(ONE, 10, 1.0, entries=bad), [0], "entries"),
    (lambda bad: gaussian_error(ONE, bad, 1.0), [0], "users"),
]


@pytest.mark.parametrize(("ask", "values", "told"), REFUSED)
def test_bad_arguments_are_refused_before_noise_is_drawn(ask: Any, values: Any, told: str) -> None:
    for bad in values:
        with pytest.raises(hs.errors.ParameterError, match=f"^{told}"):
            ask(bad)
