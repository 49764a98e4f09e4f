"""Multivariate Laplace noise that is drawn: its length, its direction, its variance, its density.

Each random test fails by chance with a probability of 1e-4 at most; the seeds are fixed.
"""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.release import (
    draw_multivariate_laplace,
    multivariate_laplace_length,
    multivariate_laplace_log_density,
    multivariate_laplace_variance,
)

LEVEL = 1e-4
DRAWS = 20_000
NOISES = [(0.5, 1, 2.0), (2.0, 2, 0.3), (3 / 11, 11, 1.0), (0.01, 101, 7.0)]
each_noise = pytest.mark.parametrize(("scale", "dimension", "sensitivity"), NOISES)


def drawn(scale: float, dimension: int, sensitivity: float) -> Any:
    """Draw noise, always the same."""
    rng = np.random.default_rng([dimension, 2026])
    noise = hs.mechanisms.MultivariateLaplace(scale, dimension)
    return draw_multivariate_laplace(noise, sensitivity, rng, draws=DRAWS)


@each_noise
def test_the_length_has_a_gamma_distribution(
    scale: float, dimension: int, sensitivity: float
) -> None:
    length = np.linalg.norm(drawn(scale, dimension, sensitivity), axis=1)
    found = stats.kstest(length, stats.gamma(dimension, scale=scale * sensitivity).cdf)
    assert found.pvalue > LEVEL


@each_noise
def test_the_direction_is_uniform_and_does_not_depend_on_the_length(
    scale: float, dimension: int, sensitivity: float
) -> None:
    noise = drawn(scale, dimension, sensitivity)
    length = np.linalg.norm(noise, axis=1)
    chosen = np.random.default_rng(5).standard_normal(dimension)
    cosine = noise @ chosen / (length * np.linalg.norm(chosen))
    if dimension == 1:
        assert stats.binomtest(int((cosine > 0).sum()), DRAWS).pvalue > LEVEL
        return
    # (1 + cos) / 2 has a Beta distribution, also among the longer half.
    half = (dimension - 1) / 2
    for part in (cosine, cosine[length > np.median(length)]):
        found = stats.kstest((1 + part) / 2, stats.beta(half, half).cdf)
        assert found.pvalue > LEVEL


@each_noise
def test_the_variance_of_a_coordinate_and_the_mean_length_are_as_stated(
    scale: float, dimension: int, sensitivity: float
) -> None:
    noise = drawn(scale, dimension, sensitivity)
    mechanism = hs.mechanisms.MultivariateLaplace(scale, dimension)
    bound = stats.norm.isf(LEVEL / 4)
    for values, mean in (
        ((noise**2).mean(axis=1), multivariate_laplace_variance(mechanism, sensitivity)),
        (np.linalg.norm(noise, axis=1), multivariate_laplace_length(mechanism, sensitivity)),
    ):
        spread = values.std() / math.sqrt(DRAWS)
        assert abs(values.mean() - mean) < bound * spread


def test_in_one_dimension_the_variance_is_that_of_laplace_noise() -> None:
    assert multivariate_laplace_variance(hs.mechanisms.MultivariateLaplace(3.0, 1), 1.0) == 2 * 9.0


def test_the_privacy_loss_of_drawn_noise_exceeds_a_level_as_often_as_the_cells_say() -> None:
    from hockeystick.privacy_loss import MultivariateLaplaceLoss

    noise = drawn(3 / 11, 11, 1.0)
    shift = np.zeros(11)
    shift[3] = 1.0
    lengths = [np.linalg.norm(vector, axis=1) for vector in (noise + shift, noise)]
    loss = (lengths[0] - lengths[1]) * 11 / 3
    one_run = MultivariateLaplaceLoss(3 / 11, 11)
    for level in (-1.0, 0.5, 2.0):
        above = math.exp(one_run.cells(np.array([level, math.inf])).log_p[0])
        assert stats.binomtest(int((loss > level).sum()), DRAWS, above).pvalue > LEVEL


@pytest.mark.parametrize(
    ("dimension", "value"),
    [
        (1, "-0.693147180559945309417232121458"),
        (2, "-1.83787706640934548356065947281"),
        (11, "-18.1357601581884452685543910273"),
        (1206590, "-8953613.54803018387246"),
    ],
)
def test_the_constant_of_the_density_is_known_in_any_dimension(dimension: int, value: str) -> None:
    noise = hs.mechanisms.MultivariateLaplace(1.0, dimension)
    found = multivariate_laplace_log_density(noise, 1.0, np.zeros(dimension))
    assert float(found) == pytest.approx(float(value), rel=1e-15)


@pytest.mark.parametrize("dimension", [1, 2, 3, 7])
def test_the_density_integrates_to_1(dimension: int) -> None:
    noise = hs.mechanisms.MultivariateLaplace(0.7, dimension)
    sphere = 2 * mp.pi ** (mp.mpf(dimension) / 2) / mp.gamma(mp.mpf(dimension) / 2)

    def term(r: Any) -> Any:
        point = np.zeros(dimension)
        point[0] = float(r)
        log = multivariate_laplace_log_density(noise, 2.0, point)
        return sphere * r ** (dimension - 1) * mp.exp(float(log))

    assert float(mp.quad(term, [0, 5, 10, 20, 60, 120])) == pytest.approx(1.0, rel=1e-12)


def test_the_density_keeps_the_shape_of_what_it_is_asked() -> None:
    noise = hs.mechanisms.MultivariateLaplace(1.0, 3)
    assert multivariate_laplace_log_density(noise, 1.0, np.zeros((4, 5, 3))).shape == (4, 5)
    far = multivariate_laplace_log_density(noise, 2.0, [[3.0, 0.0, 4.0], [0.0, 0.0, 0.0]])
    assert far[1] - far[0] == pytest.approx(2.5, rel=1e-14)


def test_edge_cases_of_a_draw() -> None:
    rng = np.random.default_rng(0)
    assert not draw_multivariate_laplace(hs.mechanisms.MultivariateLaplace(0.0, 3), 1.0, rng).any()
    assert draw_multivariate_laplace(
        hs.mechanisms.MultivariateLaplace(1.0, 3), 1.0, rng, draws=0
    ).shape == (0, 3)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((hs.mechanisms.MultivariateLaplace(math.inf, 3), 1.0), "scale"),
        ((hs.Laplace(1.0), 1.0), "mechanism"),
        ((hs.mechanisms.MultivariateLaplace(1.0, 3), 0.0), "sensitivity"),
        ((hs.mechanisms.MultivariateLaplace(1.0, 3), math.nan), "sensitivity"),
    ],
)
def test_wrong_values_are_named(arguments: Any, name: str) -> None:
    rng = np.random.default_rng(0)
    noise, sensitivity = arguments
    calls = (
        lambda: draw_multivariate_laplace(noise, sensitivity, rng),
        lambda: multivariate_laplace_log_density(noise, sensitivity, np.zeros(3)),
        lambda: multivariate_laplace_variance(noise, sensitivity),
        lambda: multivariate_laplace_length(noise, sensitivity),
    )
    for call in calls:
        with pytest.raises(hs.errors.ParameterError) as caught:
            call()
        assert caught.value.name == name


def test_what_only_one_function_takes_is_checked_too() -> None:
    noise = hs.mechanisms.MultivariateLaplace(1.0, 3)
    rng: Any = np.random.RandomState(0)
    with pytest.raises(hs.errors.ParameterError, match="rng"):
        draw_multivariate_laplace(noise, 1.0, rng)
    with pytest.raises(hs.errors.ParameterError, match="draws"):
        draw_multivariate_laplace(noise, 1.0, np.random.default_rng(0), draws=-1)
    with pytest.raises(hs.errors.ParameterError, match="points"):
        multivariate_laplace_log_density(noise, 1.0, np.zeros(4))
    with pytest.raises(hs.errors.ParameterError, match="there is no density"):
        multivariate_laplace_log_density(
            hs.mechanisms.MultivariateLaplace(0.0, 3), 1.0, np.zeros(3)
        )
