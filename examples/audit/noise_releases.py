"""Noise on numbers, and statistics of rows, as audits run them: each on its worst neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from audited import Audited, each

import hockeystick as hs
from hockeystick import release
from hockeystick.mechanisms import JointGaussian, MultivariateLaplace, PrivateCovariance

ONE = hs.Gaussian(1.0)
BOTH = JointGaussian((1.5, 2.0))


def _rows(inside: bool, *record: float) -> Any:
    """Return a data set of one row, or of none."""
    return np.array([record]) if inside else np.empty((0, len(record)))


def _number(name: str, plan: Any, trials: int = 20_000) -> Audited:
    """Return a function that adds noise to numbers, on 0 and on the sensitivity."""
    run = getattr(release, name)
    return Audited(name, (name,), plan, each(lambda inside: run(plan, float(inside), 1.0)), trials)


def _integer(name: str, plan: Any) -> Audited:
    """Return a function that adds noise to integers, on 0 and on 1."""
    run = getattr(release, name)
    return Audited(name, (name,), plan, each(lambda inside: run(plan, [int(inside)])[0]))


def numbers() -> list[Audited]:
    """Return noise on numbers and on vectors."""
    spread = np.full(16, 0.25)
    ball = MultivariateLaplace(0.5, dimension=3)
    sinh = hs.mechanisms.SinhNormal(rho=0.5, width=8)

    def along(inside: bool) -> float:
        return float(release.gaussian(ONE, inside * spread, 1.0).sum())

    def in_ball(inside: bool) -> float:
        seen, end = release.multivariate_laplace(ball, [float(inside), 0, 0], 1.0), [1.0, 0, 0]
        return float(np.linalg.norm(seen) - np.linalg.norm(seen - end))

    def in_vector(inside: bool) -> float:
        return float(release.sinh_normal_vector(sinh, [0.5 * inside] * 4, 1.0).sum())

    return [
        _number("gaussian", ONE),
        Audited("gaussian, 16 entries", ("gaussian",), ONE, each(along)),
        _number("laplace", hs.Laplace(0.5)),
        _number("sinh_normal", sinh, 2_000),
        Audited(
            "sinh_normal_vector, 4 entries",
            ("sinh_normal_vector", "sinh_normal_divergences"),
            release.sinh_normal_divergences(sinh),
            each(in_vector),
            trials=1_000,
        ),
        Audited("multivariate_laplace", ("multivariate_laplace",), ball, each(in_ball), 5_000),
        _integer("discrete_gaussian", hs.DiscreteGaussian(sigma=1.0)),
        _integer("geometric", hs.DiscreteLaplace(scale=0.5)),
        _integer("skellam", hs.mechanisms.Skellam(variance=1.0)),
    ]


def statistics() -> list[Audited]:
    """Return statistics of rows: one long row is there, or none."""
    square = PrivateCovariance(0.8, columns=2)

    def of_known_size(inside: bool) -> Any:
        return release.mean(ONE, _rows(inside, 30.0), bound=1.0, size=2)[0]

    def of_secret_size(inside: bool) -> Any:
        rows = np.concatenate((np.zeros((8, 1)), _rows(inside, 30.0)))
        return release.mean(BOTH, rows, bound=1.0)[0]

    def covariance(inside: bool) -> Any:
        return release.covariance(square, _rows(inside, 9.0, 0.0), bound=1.0, size=2)[0, 0]

    def components(inside: bool) -> Any:
        rows = _rows(inside, 9.0, 0.0)
        found = release.principal_components(square, rows, bound=1.0, components=1, size=2)
        return abs(found.vectors[0, 0]) + found.variances[0]

    def normalisation(inside: bool) -> Any:
        found = release.normalisation(BOTH, _rows(inside, 9.0), bound=1.0, size=1)
        mean, square = found.mean[0], found.deviation[0] ** 2 + found.mean[0] ** 2
        return mean / 1.5**2 + square / 2.0**2

    return [
        Audited("mean", ("mean",), ONE, each(of_known_size)),
        Audited("mean, size is secret", ("mean",), BOTH, each(of_secret_size)),
        Audited("covariance", ("covariance",), square, each(covariance)),
        Audited("principal_components", ("principal_components",), square, each(components)),
        Audited("normalisation", ("normalisation",), BOTH, each(normalisation)),
    ]


def gradients() -> list[Audited]:
    """Return sums of clipped gradients, and rules that clip: a long gradient is there, or none."""
    quantile = release.QuantileClipping(
        norm=1.0, quantile=0.5, gradient_noise=1.5, bit_noise=1.0, step_size=0.2
    )
    online = release.OnlineClipping(
        norm=1.0, learning_rate=0.5, gradient_noise=1.5, direction_noise=2.0, norm_rate=0.1
    )
    _, online = online.step(np.ones((64, 1)), expected=64)
    coordinates = release.CoordinateClipping(dimension=1, noise_multiplier=1.0)

    def layered(inside: bool) -> Any:
        layers = [_rows(inside, 9.0), _rows(inside, 9.0)]
        first, second = release.layered_sum(BOTH, layers, norms=[1.0, 0.5])
        return first[0] / 1.5**2 + second[0] / (0.5 * 2.0**2)

    def selective(inside: bool) -> Any:
        return release.selective_sum(ONE, _rows(inside, 9.0, 0.0), norm=1.0, keep=0.5)[0]

    def pruned(inside: bool) -> Any:
        return release.randomly_pruned_sum(ONE, _rows(inside, 9.0), norm=1.0, keep=1.0)[0]

    def by_quantile(inside: bool) -> Any:
        mean, then = quantile.step(_rows(inside, 9.0), expected=1)
        return mean[0] / 1.5**2 + np.log(then.norm) / quantile.step_size * 0.5 / 1.0**2

    def by_descent(inside: bool) -> Any:
        return online.step(_rows(inside, 9.0), expected=1)[0][0]

    def by_coordinate(inside: bool) -> Any:
        return coordinates.step(_rows(inside, 9.0), expected=1)[0][0]

    return [
        Audited("layered_sum", ("layered_sum",), BOTH, each(layered)),
        Audited("selective_sum", ("selective_sum",), ONE, each(selective)),
        Audited("randomly_pruned_sum", ("randomly_pruned_sum",), ONE, each(pruned)),
        Audited(
            "QuantileClipping.step", ("QuantileClipping",), quantile.mechanism, each(by_quantile)
        ),
        Audited("OnlineClipping.step", ("OnlineClipping",), online.mechanism, each(by_descent)),
        Audited(
            "CoordinateClipping.step",
            ("CoordinateClipping",),
            coordinates.mechanism,
            each(by_coordinate),
        ),
    ]
