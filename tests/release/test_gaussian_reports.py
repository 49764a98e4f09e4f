"""Vectors reported with Gaussian noise: clipped, as far apart as is accounted, and unbiased."""

import math
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pytest
from scipy.stats import chi2, kstest

import hockeystick as hs
from hockeystick.release import gaussian_error, gaussian_mean, gaussian_reports
from tests.release.bits import none_left, seeded

NONE: Final = hs.Gaussian(0.0)
RARE: Final = 1e-6


def squared_norm(row: Any) -> Fraction:
    """The exact square of a row's norm."""
    return sum((Fraction(float(one)) ** 2 for one in row), Fraction(0))


@pytest.mark.parametrize("norm", [1.0, 0.1, 3e-7, 2.5e99])
def test_no_clipped_row_is_beyond_the_norm_that_is_accounted(norm: float) -> None:
    rng = np.random.default_rng(11)
    rows = rng.standard_normal((40, 33)) * 10.0 ** rng.uniform(-2, 2, (40, 1)) * norm
    rows[0], rows[1], rows[2] = 0.0, 1e300, 5e-324
    rows[3] = np.eye(33)[7] * norm
    clipped = gaussian_reports(NONE, rows, norm)
    # Half a step of the grid, 2^-20 of twice the norm, in each of 33 entries.
    slack = Fraction(norm) * (1 + Fraction(6, 2**20) + Fraction(1, 2**30))
    assert all(squared_norm(row) <= slack**2 for row in clipped)
    inside = np.array(
        [squared_norm(row) <= Fraction(norm) ** 2 * Fraction(99, 100) for row in rows]
    )
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
    allowed = hs.tradeoff(noise).power(alpha)
    assert power <= allowed + 6.0 / math.sqrt(users)
    assert power >= allowed - 6.0 / math.sqrt(users)


def test_noise_is_never_below_twice_the_norm_times_the_multiplier() -> None:
    for noise in (0.1, 1.0, 1e4):
        for norm in (0.1, 1.0, 3e7):
            for entries in (1, 2, 1000):
                exact = 2 * Fraction(noise) * Fraction(norm)
                found = Fraction(gaussian_error(hs.Gaussian(noise), 1, norm, entries=entries))
                assert exact < found <= exact * (1 + Fraction(1, 2**15))


@pytest.mark.parametrize("entries", [None, 3])
def test_means_are_off_by_their_error_at_the_level_of_one_in_a_million(entries: int | None) -> None:
    noise, rounds, users = hs.Gaussian(0.8), 300, 200
    base = np.linspace(-0.5, 0.5, users)
    values = base if entries is None else np.stack([base, 0.5 * base, -base], axis=1)
    bits, truth = seeded(31), values.mean(axis=0)
    found = np.array(
        [
            gaussian_mean(noise, gaussian_reports(noise, values, 1.0, bits=bits))
            for _ in range(rounds)
        ]
    )
    error = gaussian_error(noise, users, 1.0, entries=entries or 1)
    off = (found - truth) / error
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
