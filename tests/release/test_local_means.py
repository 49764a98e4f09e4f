"""Means of what people randomize themselves: unbiased, off by their error, as private as said."""

import math
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pytest
from scipy.stats import chi2, kstest

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


@each_kind
def test_estimates_are_off_by_their_error_at_the_level_of_one_in_a_million(
    kind: type[LocalMean],
) -> None:
    assert kind(1e-200).error([0.0]) == math.inf
    mean, rng, rounds = kind(1.2, 0.0, 5.0), np.random.default_rng(31), 400
    data = np.repeat(DATA, 200)
    found = np.array([mean.estimate(mean.reports(data, rng)) for _ in range(rounds)])
    error = mean.error(data)
    assert abs(found.mean() - data.mean()) < 5.0 * math.sqrt(error / rounds)
    statistic = float(np.square(found - data.mean()).sum()) / error
    assert chi2.ppf(RARE, rounds) < statistic < chi2.ppf(1 - RARE, rounds)


def test_laplace_reports_have_the_scale_of_their_error_on_a_grid() -> None:
    mean = LaplaceMean(2.0, -1.0, 3.0)
    noise = mean.reports(np.zeros(50_000), bits=seeded(8))
    assert kstest(noise, "laplace", args=(0.0, 2.0)).pvalue > RARE
    assert mean.error(np.zeros(50_000)) == pytest.approx(8.0 / 50_000, rel=1e-15)
    assert np.array_equal(noise * 2.0**19, np.rint(noise * 2.0**19))


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


def test_the_two_farthest_values_are_told_apart_as_well_as_is_accounted() -> None:
    noise, users, norm = hs.Gaussian(1.25), 40_000, 2.0
    values = np.where(np.arange(users)[:, None] < users // 2, 7.0, -7.0) * np.array([[3.0, 4.0]])
    along = gaussian_reports(noise, values, norm, bits=seeded(4)) @ np.array([0.6, 0.8])
    near, far = along[: users // 2], along[users // 2 :]
    # N(+-C, (2 C z)^2): the means are 2C apart, as the mechanism says in units of 2C.
    for drawn, mean in ((near, norm), (far, -norm)):
        assert kstest(drawn, "norm", args=(mean, 2.0 * norm * 1.25)).pvalue > RARE
    alpha, power = float((far > 0.0).mean()), float((near > 0.0).mean())
    assert abs(power - hs.tradeoff(noise).power(alpha)) <= 6.0 / math.sqrt(users)


def test_noise_is_never_below_twice_the_norm_times_the_multiplier() -> None:
    for noise in (0.1, 1.0, 1e4):
        for norm in (0.1, 1.0, 3e7):
            for entries in (1, 2, 1000):
                exact = 2 * Fraction(noise) * Fraction(norm)
                found = Fraction(gaussian_error(hs.Gaussian(noise), 1, norm, entries=entries))
                assert exact < found <= exact * (1 + Fraction(1, 2**15))


@pytest.mark.parametrize("entries", [None, 3])
def test_means_of_vectors_are_off_by_their_error(entries: int | None) -> None:
    noise, rounds, users, bits = hs.Gaussian(0.8), 300, 200, seeded(31)
    base = np.linspace(-0.5, 0.5, users)
    values = base if entries is None else np.stack([base, 0.5 * base, -base], axis=1)
    reports = [gaussian_reports(noise, values, 1.0, bits=bits) for _ in range(rounds)]
    found = np.array([gaussian_mean(noise, one) for one in reports])
    off = (found - values.mean(axis=0)) / gaussian_error(noise, users, 1.0, entries=entries or 1)
    assert (np.abs(off.mean(axis=0)) < 5.5 / math.sqrt(rounds)).all()
    squares = np.square(off).sum(axis=0)
    assert (squares > chi2.ppf(RARE, rounds)).all()
    assert (squares < chi2.ppf(1 - RARE, rounds)).all()


def test_each_user_draws_noise_of_their_own() -> None:
    reports = gaussian_reports(hs.Gaussian(1.0), np.zeros((500, 2)), 1.0, bits=seeded(3))
    assert np.unique(reports).size == 1000
    assert abs(np.corrcoef(reports[1:, 0], reports[:-1, 0])[0, 1]) < 0.25


@pytest.mark.parametrize(
    "bad", [[], "ab", [math.nan], [[math.inf]], np.zeros((2, 2, 2)), 3.0, [True], [1j]]
)
def test_what_are_no_vectors_is_refused_before_noise_is_drawn(bad: Any) -> None:
    with pytest.raises(hs.errors.ParameterError, match="values"):
        gaussian_reports(hs.Gaussian(1.0), bad, 1.0, bits=none_left)
    with pytest.raises(hs.errors.ParameterError, match="reports"):
        gaussian_mean(hs.Gaussian(1.0), bad)


def test_numbers_outside_their_domains_are_refused() -> None:
    for norm in (0.0, -1.0, math.nan, math.inf, 1e101):
        with pytest.raises(hs.errors.ParameterError, match="norm"):
            gaussian_reports(hs.Gaussian(1.0), [0.5], norm, bits=none_left)
    with pytest.raises(hs.errors.ParameterError, match="entries"):
        gaussian_error(hs.Gaussian(1.0), 10, 1.0, entries=0)
    with pytest.raises(hs.errors.ParameterError, match="users"):
        gaussian_error(hs.Gaussian(1.0), 0, 1.0)
    with pytest.raises(hs.errors.ParameterError, match="mechanism"):
        gaussian_reports(hs.Gaussian(math.inf), [0.5], 1.0, bits=none_left)
