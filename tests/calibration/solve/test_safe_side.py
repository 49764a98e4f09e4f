"""What a search and its constraints take for met, at random numbers beside fifty digits."""

import math
from fractions import Fraction

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.calibration.filters.measures import epsilon_of
from hockeystick.calibration.solve.fields import Parameter, numeric_paths
from hockeystick.calibration.solve.search import Evaluation, Search
from hockeystick.calibration.solve.targets import (
    BayesErrorConstraint,
    EpsilonConstraint,
    Measured,
    RenyiConstraint,
)
from hockeystick.numerics.multiprecision import mp

NOISE = Parameter.of(hs.Gaussian(1.0), numeric_paths(hs.Gaussian(1.0))[0])


@pytest.mark.parametrize(
    ("inside", "outside", "found"), [(9.0, 1.0, (7.0, 6.0)), (1.0, 9.0, (2.0, 3.0))]
)
def test_of_several_brackets_the_search_takes_the_safest(
    inside: float, outside: float, found: tuple[float, float]
) -> None:
    search = Search(NOISE, EpsilonConstraint(1.0, "auto", 1e-5), lambda plan: plan, 1e-9)
    missed = (1.0, 3.0, 6.0) if inside > outside else (3.0, 6.0, 9.0)
    for x in (1.0, 2.0, 3.0, 4.0, 6.0, 7.0, 9.0):
        search.evaluated[x] = Evaluation(x, None, 0.0, x not in missed, False)
    ends = search._closest(search.evaluated[inside], search.evaluated[outside])
    assert (ends[0].x, ends[1].x) == found


def test_the_bayes_error_of_a_gaussian_is_between_its_ends() -> None:
    draw = np.random.default_rng(1)
    with mp.workdps(50):
        for _ in range(6):
            sigma, prior = float(draw.uniform(0.3, 3.0)), float(draw.uniform(0.01, 0.99))
            found = BayesErrorConstraint(0.1, "auto", prior).evaluate(hs.Gaussian(sigma))
            s, p = mp.mpf(repr(sigma)), min(mp.mpf(prior), 1 - mp.mpf(prior))
            e = mp.log((1 - p) / p)
            delta = mp.ncdf(1 / (2 * s) - e * s) - mp.exp(e) * mp.ncdf(-1 / (2 * s) - e * s)
            assert found.lower <= p * (1 - delta) <= found.upper
            assert found.upper - found.lower < 1e-9


def test_the_bayes_error_of_next_to_no_release_is_rounded_outward() -> None:
    for prior in np.random.default_rng(2).uniform(0.51, 0.99, 40).tolist():
        found = BayesErrorConstraint(0.1, "auto", prior).evaluate(hs.RandomizedResponse(1e-9))
        exact = 1 - Fraction(prior)
        assert found.lower <= exact <= found.upper or found.lower == found.upper == float(exact)


def test_the_ratio_of_a_divergence_is_rounded_outward() -> None:
    draw = np.random.default_rng(3)
    for _ in range(30):
        rho, allowed = float(draw.uniform(0.1, 2.0)), float(draw.uniform(0.1, 9.0))
        found = RenyiConstraint(1.0, "auto", ((3.0, allowed),)).evaluate(hs.ZCDP(rho))
        exact = 3 * Fraction(rho) / Fraction(allowed)
        assert Fraction(found.lower) <= exact <= Fraction(found.upper)
        assert found.upper == pytest.approx(float(exact), rel=1e-9)


def test_a_target_is_met_by_the_upper_end_and_missed_by_the_lower_one() -> None:
    constraint = EpsilonConstraint(1.0, "auto", 1e-5)
    wide = Measured(0.9, 1.1, "epsilon")
    assert not constraint.meets(wide)
    assert not constraint.violates(wide)
    assert constraint.meets(Measured(0.9, 1.0, "epsilon"))
    assert constraint.violates(Measured(1.0 + 1e-15, 2.0, "epsilon"))


def test_the_largest_error_is_rounded_up_from_the_least_reading_of_its_chance() -> None:
    draw = np.random.default_rng(4)
    with mp.workdps(50):
        for _ in range(3):
            count, beta = int(draw.integers(1, 10**6)), float(10 ** draw.uniform(-15, -0.1))
            found = hs.calibration.max_error_quantile(1.0, count, beta)
            least = min(mp.mpf(beta), mp.mpf(repr(beta)))
            chance = -mp.expm1(count * mp.log1p(-mp.erfc(mp.mpf(found) / mp.sqrt(2))))
            assert least * (1 - mp.mpf(10) ** -9) <= chance <= least


def test_the_epsilon_of_laplace_noise_is_rounded_up() -> None:
    for scale in np.random.default_rng(5).uniform(0.1, 9.0, 100).tolist():
        exact = 1 / Fraction(repr(scale))
        assert exact <= epsilon_of(hs.Laplace(scale)) <= exact * (1 + Fraction(1, 10**9))
        assert math.isfinite(float(exact))
