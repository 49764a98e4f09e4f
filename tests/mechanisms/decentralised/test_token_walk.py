"""Noisy iterations and token walks: what they take, and what they refuse with a reason."""

from typing import Any

import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp

STEPS: dict[str, Any] = {"step_size": 0.1, "smoothness": 20.0}
WALK = hs.mechanisms.TokenWalk(10.0, 100, **STEPS)
RUN = hs.mechanisms.NoisyIterations(10.0, 1000, **STEPS)


@pytest.mark.parametrize("make", [hs.mechanisms.NoisyIterations, hs.mechanisms.TokenWalk])
@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"convex": False}, "proven for convex losses alone"),
        ({"smoothness": 20.000001}, "step_size times smoothness must be at most 2"),
        ({"adjacency": "add-remove"}, "replace-one' or 'zero-out', not 'add-remove'"),
    ],
)
def test_what_is_not_proven_is_refused_with_the_reason(
    make: Any, given: dict[str, Any], reason: str
) -> None:
    make(10.0, 100, **STEPS)
    with pytest.raises(hs.errors.IncompatibleError, match=reason):
        make(10.0, 100, **{**STEPS, **given})


def test_released_models_are_refused() -> None:
    with pytest.raises(hs.errors.IncompatibleError, match="not covered by later noise"):
        hs.mechanisms.NoisyIterations(10.0, 100, **STEPS, released="all")


def test_each_topology_has_parameters_of_its_own() -> None:
    with pytest.raises(hs.errors.IncompatibleError, match="give its distance"):
        hs.mechanisms.TokenWalk(10.0, 100, "ring", observers=2, **STEPS)
    with pytest.raises(hs.errors.IncompatibleError, match="there is no distance"):
        hs.mechanisms.TokenWalk(10.0, 100, distance=2, **STEPS)
    with pytest.raises(hs.errors.IncompatibleError, match="once a round"):
        hs.mechanisms.TokenWalk(10.0, 100, "ring", **STEPS).excess(10, 3)


def test_the_records_place_decides_how_many_steps_cover_it() -> None:
    assert RUN.covering == 1
    assert hs.mechanisms.NoisyIterations(10.0, 1000, 1, **STEPS).covering == 1000
    assert hs.mechanisms.NoisyIterations(10.0, 1000, 1000, **STEPS).covering == 1
    assert hs.mechanisms.NoisyIterations(10.0, 0, **STEPS).covering == 0


@pytest.mark.parametrize(("steps", "visits"), [(1000, 12), (1000, 40), (50, 0), (10_000, 130)])
def test_the_excess_bounds_the_binomial_tail_and_is_near(steps: int, visits: int) -> None:
    with mp.workdps(40):
        term = mp.binomial(steps, visits + 1) * mp.mpf(99) ** (steps - visits - 1)
        truth = mp.zero
        for hits in range(visits + 1, min(steps, visits + 300) + 1):
            truth += term
            term *= mp.mpf(steps - hits) / (hits + 1) / 99
        truth /= mp.mpf(100) ** steps
        assert truth <= WALK.excess(steps, visits) <= 2.2 * truth


def test_the_excess_at_its_ends() -> None:
    assert WALK.excess(10, 10) == 0.0
    assert WALK.excess(1000, 10) <= 1.0
    assert WALK.excess(1000, 2) == 1.0
