"""Metric privacy: what it is within a radius, how it adds up, and that it needs a radius."""

import math
from fractions import Fraction
from typing import Any

import pytest

import hockeystick as hs


def test_within_a_radius_it_is_pure_dp_rounded_up() -> None:
    for epsilon, radius in ((0.1, 3.0), (0.7, 0.3), (1 / 3, 1e-3)):
        found = hs.notions.MetricDP(epsilon).within(radius)
        exact = Fraction(repr(epsilon)) * Fraction(repr(radius))
        assert exact <= Fraction(found.epsilon) <= exact * (1 + Fraction(1, 2**51))


@pytest.mark.parametrize(
    ("epsilon", "radius", "answer"),
    [(0, 5, 0.0), (0, math.inf, 0.0), (math.inf, 0, 0.0), (math.inf, 1, math.inf), (2, 0, 0.0)],
)
def test_the_ends_of_the_domains(epsilon: float, radius: float, answer: float) -> None:
    assert hs.notions.MetricDP(epsilon).within(radius) == hs.PureDP(answer)


def test_releases_about_the_same_inputs_add_their_epsilons() -> None:
    both = hs.notions.MetricDP(0.5).compose(hs.notions.MetricDP(0.25))
    assert both == hs.notions.MetricDP(0.75)
    assert both.compose(hs.notions.MetricDP(math.inf)) == hs.notions.MetricDP(math.inf)
    assert Fraction(hs.notions.MetricDP(0.1).compose(hs.notions.MetricDP(0.2)).epsilon) >= Fraction(
        3, 10
    )


def test_releases_at_distances_of_their_own_add_epsilon_times_distance() -> None:
    releases = [
        (hs.notions.MetricDP(0.5), 3),
        (hs.notions.MetricDP(0.25, "hamming"), 2),
        (hs.notions.MetricDP(7), 0),
    ]
    assert hs.notions.metric_composition(releases) == hs.PureDP(2.0)
    assert hs.notions.metric_composition([(hs.notions.MetricDP(math.inf), 0)]) == hs.PureDP(0.0)
    assert hs.notions.metric_composition([(hs.notions.MetricDP(1), math.inf)]) == hs.PureDP(
        math.inf
    )


def test_the_sum_is_what_the_accounted_composition_costs_at_delta_0() -> None:
    one, other = hs.notions.MetricDP(0.5).within(3), hs.notions.MetricDP(0.25).within(2)
    assert hs.epsilon(one @ other, delta=0).upper == pytest.approx(2.0, rel=1e-12)
    assert hs.epsilon(one @ other, delta=1e-2).upper < 2.0


def test_a_group_is_as_many_times_as_far() -> None:
    assert hs.notions.MetricDP(0.5, "hamming").group(3) == hs.notions.MetricDP(1.5, "hamming")


@pytest.mark.parametrize("accountant", ["auto", "rdp", "prv", "gdp"])
def test_without_a_radius_it_is_refused_with_the_way_out(accountant: str) -> None:
    for plan in (
        hs.notions.MetricDP(0.5),
        hs.notions.MetricDP(0.5) ** 3,
        hs.notions.MetricDP(0.5) @ hs.Gaussian(2),
    ):
        with pytest.raises(
            hs.errors.UnsupportedError, match=r"MetricDP\(epsilon\)\.within\(radius\)"
        ):
            hs.epsilon(plan, 1e-5, accountant=accountant)


def test_different_metrics_do_not_add_up() -> None:
    with pytest.raises(hs.errors.IncompatibleError, match="euclidean and the hamming"):
        hs.notions.MetricDP(1).compose(hs.notions.MetricDP(1, "hamming"))


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: hs.notions.MetricDP(-1), "epsilon"),
        (lambda: hs.notions.MetricDP(math.nan), "epsilon"),
        (lambda: hs.notions.MetricDP(1, ""), "metric"),
        (lambda: hs.notions.MetricDP(1, 2), "metric"),  # type: ignore[arg-type]
        (lambda: hs.notions.MetricDP(1, origin="proof"), "origin"),  # type: ignore[arg-type]
        (lambda: hs.notions.MetricDP(1).within(-1), "radius"),
        (lambda: hs.notions.MetricDP(1).within(math.nan), "radius"),
        (lambda: hs.notions.MetricDP(1).group(0), "size"),
        (lambda: hs.notions.MetricDP(1).compose(hs.PureDP(1)), "other"),  # type: ignore[arg-type]
        (lambda: hs.notions.metric_composition([]), "releases"),
        (lambda: hs.notions.metric_composition(3), "releases"),  # type: ignore[arg-type]
        (lambda: hs.notions.metric_composition([(hs.PureDP(1), 1)]), "releases"),  # type: ignore[list-item]
        (lambda: hs.notions.metric_composition([(hs.notions.MetricDP(1), -1)]), "radius"),
    ],
)
def test_wrong_values_are_named(make: Any, name: str) -> None:
    with pytest.raises(hs.errors.ParameterError) as caught:
        make()
    assert caught.value.name == name
