"""The staircase mechanism: its parameters, its edges, and what it is the best at."""

import math
from pathlib import Path

import pytest
from scipy.integrate import quad

import hockeystick as hs
from hockeystick.mechanisms import Staircase


def absolute_error(epsilon: float, gamma: float) -> float:
    """Integrate |x| over the density of the definition, step by step."""
    small = math.exp(-epsilon)
    height = (1 - small) / (2 * (gamma + small * (1 - gamma)))
    total = 0.0
    for k in range(int(40 / epsilon) + 2):
        for low, high, fallen in ((k, k + gamma, k), (k + gamma, k + 1, k + 1)):
            total += 2 * quad(lambda x: x, low, high)[0] * height * small**fallen
    return total


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_the_usual_gamma_has_the_least_absolute_error(epsilon: float) -> None:
    best = 1 / (1 + math.exp(epsilon / 2))
    least = absolute_error(epsilon, best)
    # Geng and Viswanath 2014, theorem 3.
    half = math.exp(epsilon / 2)
    assert least == pytest.approx(half / (half * half - 1), rel=1e-9)
    for gamma in (0.01, 0.9 * best, 1.1 * best, 0.5, 0.99):
        assert absolute_error(epsilon, gamma) > least
    usual, given = hs.delta(Staircase(epsilon), 0.1), hs.delta(Staircase(epsilon, best), 0.1)
    assert given.upper == pytest.approx(usual.upper, rel=1e-12)


@pytest.mark.parametrize("gamma", [None, 0.3, 0.5, 0.75, 1.0])
def test_epsilon_0_costs_nothing_and_it_is_never_more_than_epsilon(gamma: float | None) -> None:
    assert hs.delta(Staircase(0.0, gamma), 0.0).upper == 0.0
    assert hs.delta(Staircase(0.8, gamma), 0.8).upper < 1e-16
    assert hs.delta(Staircase(0.8, gamma), 0.801).upper == 0.0
    assert hs.delta(Staircase(0.8, gamma), 0.79).lower > 0.0
    assert hs.convert(Staircase(0.8, gamma), hs.PureDP).epsilon == pytest.approx(0.8)


# Uniform noise between -gamma and gamma: the outputs of two neighbours overlap by 2 gamma - 1.
@pytest.mark.parametrize(
    ("gamma", "shown"), [(None, 1.0), (0.3, 1.0), (0.5, 1.0), (0.625, 0.8), (1.0, 0.5)]
)
def test_with_epsilon_infinite_the_noise_is_uniform(gamma: float | None, shown: float) -> None:
    found = hs.delta(Staircase(math.inf, gamma), 3.0)
    assert found.lower <= shown <= found.upper
    assert found.relative_width < 1e-12
    twice = hs.delta(Staircase(math.inf, gamma) ** 2, 3.0)
    assert twice.lower <= 1 - (1 - shown) ** 2 <= twice.upper


def test_a_plan_file_and_the_command_know_it(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text('[[release]]\nmechanism = "Staircase"\nepsilon = 0.5\nrepeat = 3\n')
    assert hs.load_plan(path).plan == Staircase(0.5) ** 3
    path.unlink()
    hs.save_plan(Staircase(0.5, 0.25), path)
    assert hs.load_plan(path).plan == Staircase(0.5, 0.25)
