"""The one root finder."""

import math
from collections.abc import Callable

import pytest

from hockeystick.numerics.roots import increasing_root, increasing_root_by_newton

FUNCTIONS: dict[str, tuple[Callable[[float], float], float]] = {
    "line": (lambda x: x - 3.25, 3.25),
    "cubic": (lambda x: (x + 1.5) ** 3, -1.5),
    "exponential": (lambda x: math.exp(min(x, 600.0)) - 1e40, 40 * math.log(10)),
    "saturating": (lambda x: math.atan(1e6 * (x - 0.1)), 0.1),
    "sign only": (lambda x: math.inf if x > 7.0 else -math.inf, 7.0),
    "step": (lambda x: 1.0 if x >= -2.0 else -1.0, -2.0),
    "infinite on one side": (lambda x: math.log(x - 1.0) if x > 1.0 else -math.inf, 2.0),
}


DERIVATIVES: dict[str, Callable[[float], float]] = {
    "line": lambda x: 1.0,
    "cubic": lambda x: 3.0 * (x + 1.5) ** 2,
    "exponential": lambda x: math.exp(min(x, 600.0)),
    "saturating": lambda x: 1e6 / (1.0 + 1e12 * (x - 0.1) ** 2),
    "sign only": lambda x: 0.0,
    "step": lambda x: 0.0,
    "infinite on one side": lambda x: 1.0 / (x - 1.0) if x > 1.0 else 0.0,
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("guess", [-50.0, 0.0, 1.4, 33.0])
@pytest.mark.parametrize("last_step", [1e-3, 1e-9])
def test_newton_finds_about_the_same_root(name: str, guess: float, last_step: float) -> None:
    function, root = FUNCTIONS[name]
    flat = 1e-4 if name == "cubic" else 0.0
    found = increasing_root_by_newton(
        lambda x: (function(x), DERIVATIVES[name](x)), guess, last_step=last_step, farthest=150.0
    )
    assert abs(found - root) <= 4.0 * last_step + flat + 4 * math.ulp(root)


@pytest.mark.parametrize("guess", [-50.0, 6.9, 7.1, 33.0])
def test_newton_ends_below_a_jump(guess: float) -> None:
    function, root = FUNCTIONS["sign only"]
    found = increasing_root_by_newton(
        lambda x: (function(x), 0.0), guess, last_step=1e-3, farthest=60.0
    )
    assert root - 1e-3 <= found <= root


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_newton_without_a_root_ends_at_the_farthest_point(sign: float) -> None:
    found = increasing_root_by_newton(lambda x: (sign, 0.0), 3.0, last_step=1e-3, farthest=60.0)
    assert found == -60.0 * sign


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("guess", [-50.0, 0.0, 1.4, 33.0])
@pytest.mark.parametrize("tolerance", [1e-3, 1e-9])
def test_the_root_is_found_to_the_tolerance_from_any_guess(
    name: str, guess: float, tolerance: float
) -> None:
    function, root = FUNCTIONS[name]
    flat = 1e-4 if name == "cubic" else 0.0  # the floats cubed underflow near the root
    found = increasing_root(function, guess, tolerance=tolerance)
    assert abs(found - root) <= tolerance + flat + 4 * math.ulp(root)


def test_a_guess_that_is_the_root_is_returned_after_one_evaluation() -> None:
    calls: list[float] = []

    def function(x: float) -> float:
        calls.append(x)
        return x - 2.0

    assert increasing_root(function, 2.0, tolerance=1e-9) == 2.0
    assert calls == [2.0]


@pytest.mark.parametrize(("sign", "end"), [(-1.0, 60.0), (1.0, -60.0)])
def test_without_a_sign_change_the_answer_is_the_farthest_point(sign: float, end: float) -> None:
    assert increasing_root(lambda _: sign, 1.5, tolerance=1e-6, farthest=60.0) == end


@pytest.mark.parametrize("guess", [-20.0, 0.3, 12.0])
def test_a_smooth_root_takes_few_evaluations(guess: float) -> None:
    calls: list[float] = []

    def function(x: float) -> float:
        calls.append(x)
        return math.expm1(x) + x**3 - 5.0

    increasing_root(function, guess, tolerance=1e-12)
    assert len(calls) <= 30


def test_the_walk_never_leaves_the_farthest_range() -> None:
    calls: list[float] = []

    def function(x: float) -> float:
        calls.append(x)
        return x - 9.9

    assert increasing_root(function, 0.0, tolerance=1e-9, farthest=10.0) == pytest.approx(9.9)
    assert max(map(abs, calls)) <= 10.0


def test_the_search_ends_where_floats_cannot_meet_the_tolerance() -> None:
    calls: list[float] = []

    def function(x: float) -> float:
        calls.append(x)
        return -1.0 if x < 1e16 / 3 else 1.0

    found = increasing_root(function, 1.0, tolerance=1e-300)
    assert found == pytest.approx(1e16 / 3, rel=1e-15)
    assert len(calls) < 400
