"""Means of numbers that people randomize themselves: unbiased, and off by their error."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2, kstest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.release import LaplaceMean, LocalMean, OneBitMean

DATA = np.array([0.0, 1.0, 1.0, 4.0, 5.0])
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


def test_one_bit_is_as_private_as_its_mechanism() -> None:
    # The ratio of the chances of a report is largest at the two ends, where it is e^epsilon.
    tau = math.tanh(0.5)
    chances = 0.5 + 0.5 * tau * np.linspace(-1.0, 1.0, 101)
    for column in (chances, 1.0 - chances):
        assert math.log(column.max() / column.min()) == pytest.approx(1.0, rel=1e-12)
    assert OneBitMean(1.0).mechanism == hs.RandomizedResponse(1.0, 2)
    assert LaplaceMean(2.0, 0.0, 10.0).mechanism == hs.Laplace(0.5)
    assert float(hs.epsilon(LaplaceMean(2.0).mechanism, 0.0)) == pytest.approx(2.0, rel=1e-12)


@pytest.mark.parametrize("ends", [(0.1, 0.3), (1e9, 1e9 + 1e-3), (1e16, 1e16 + 2.0), (-3.0, 1e-9)])
def test_one_bit_scales_the_ends_of_any_interval_to_one(ends: tuple[float, float]) -> None:
    mean, (low, high) = OneBitMean(30.0, *ends), ends
    between = np.linspace(low, high, 50).clip(low, high)
    scaled = mean._scaled(np.concatenate(([low, high], between)))
    assert scaled[:2].tolist() == [-1.0, 1.0]
    assert np.abs(scaled).max() == 1.0


@each_kind
def test_hardly_any_epsilon_has_an_infinite_error(kind: type[LocalMean]) -> None:
    assert kind(1e-200).error([0.0]) == math.inf


@each_kind
def test_estimates_are_off_by_their_error_at_the_level_of_one_in_a_million(
    kind: type[LocalMean],
) -> None:
    mean, rng, rounds = kind(1.2, 0.0, 5.0), np.random.default_rng(31), 400
    data = np.repeat(DATA, 200)
    found = np.array([mean.estimate(mean.reports(data, rng)) for _ in range(rounds)])
    error = mean.error(data)
    assert abs(found.mean() - data.mean()) < 5.0 * math.sqrt(error / rounds)
    statistic = float(np.square(found - data.mean()).sum()) / error
    assert chi2.ppf(1e-6, rounds) < statistic < chi2.ppf(1 - 1e-6, rounds)


def test_laplace_reports_have_the_scale_of_their_error() -> None:
    mean, rng = LaplaceMean(2.0, -1.0, 3.0), np.random.default_rng(8)
    noise = mean.reports(np.zeros(50_000), rng)
    assert kstest(noise, "laplace", args=(0.0, 2.0)).pvalue > 1e-6
    assert mean.error(np.zeros(50_000)) == pytest.approx(8.0 / 50_000, rel=1e-15)


def test_one_bit_reports_take_two_values() -> None:
    mean = OneBitMean(1.0, 0.0, 2.0)
    reports = mean.reports(np.linspace(0.0, 2.0, 500), np.random.default_rng(2))
    tau = math.tanh(0.5)
    assert sorted(set(reports.tolist())) == pytest.approx([1.0 - 1.0 / tau, 1.0 + 1.0 / tau])


def test_without_noise_numbers_are_reported_or_rounded() -> None:
    rng = np.random.default_rng(4)
    assert LaplaceMean(math.inf, 0.0, 5.0).reports(DATA, rng).tolist() == DATA.tolist()
    assert LaplaceMean(math.inf, 0.0, 5.0).error(DATA) == 0.0
    assert set(OneBitMean(math.inf, 0.0, 5.0).reports(DATA, rng).tolist()) <= {0.0, 5.0}


@each_kind
@pytest.mark.parametrize("bad", [[5.1], [-0.1], [math.nan], [], "ab", [[1.0]], [True]])
def test_what_is_outside_the_interval_is_refused(kind: type[LocalMean], bad: Any) -> None:
    mean = kind(1.0, 0.0, 5.0)
    for ask in (lambda: mean.reports(bad, np.random.default_rng(1)), lambda: mean.error(bad)):
        with pytest.raises(
            hs.errors.ParameterError, match="values must be a row of one or more numbers"
        ):
            ask()


@each_kind
@pytest.mark.parametrize(
    "bad",
    [(0.0, 0, 1), (-1.0, 0, 1), (math.nan, 0, 1), (1.0, 1, 1), (1.0, 2, 1), (1.0, 0, math.inf)],
)
def test_what_is_no_randomizer_is_refused(
    kind: type[LocalMean], bad: tuple[float, float, float]
) -> None:
    with pytest.raises(hs.errors.ParameterError):
        kind(*bad)


def test_no_reports_are_no_estimate() -> None:
    with pytest.raises(hs.errors.ParameterError, match="reports"):
        OneBitMean(1.0).estimate([])
