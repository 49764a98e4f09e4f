"""The oracles against closed forms, a stored reference, and each other."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

from mpmath import mp

from tests.oracles.lattice import lattice
from tests.oracles.levy import Direction, Plan, deltas, epsilons, two_tails

# Whoever changes an oracle asks these: what they are for is stored.

REFERENCE = Path(__file__).parent / "epsilon_reference.json"


def _gaussian(mu: Any, e: Any) -> Any:
    """delta(e) of N(mu, 1) against N(0, 1)."""
    return mp.ncdf(mu / 2 - e / mu) - mp.exp(e) * mp.ncdf(-mu / 2 - e / mu)


def _one_step(rate: float, scale: float, epsilon: float, direction: Direction) -> Any:
    """delta(epsilon) of one subsampled Gaussian, from its optimal event {x > t} or {x < t}."""
    q, s, e = mp.mpf(rate), mp.mpf(scale), mp.mpf(epsilon)
    sign = 1 if direction == "remove" else -1
    x = mp.mpf(1) / 2 + s * s * mp.log((mp.exp(sign * e) - 1 + q) / q)
    a, b = mp.ncdf(-sign * x / s), mp.ncdf(-sign * (x - 1) / s)
    mixture = (1 - q) * a + q * b
    return mixture - mp.exp(e) * a if direction == "remove" else a - mp.exp(e) * mixture


def test_levy_is_exact_for_one_step() -> None:
    found = deltas(Plan(0.5, 8.0, 1), 0.01, 1e-3)
    with mp.workdps(40):
        for direction, value in found.items():
            exact = _one_step(0.5, 8.0, 0.01, direction)
            assert abs(value - exact) < exact * mp.mpf(10) ** -22


def test_levy_is_exact_without_subsampling() -> None:
    found = deltas(Plan(1.0, 10.0, 100), 2.0, 1e-3)
    with mp.workdps(40):
        exact = _gaussian(mp.mpf(1), mp.mpf(2))
        for value in found.values():
            assert abs(value - exact) < exact * mp.mpf(10) ** -22


def test_levy_reproduces_a_stored_epsilon() -> None:
    case = json.loads(REFERENCE.read_text(encoding="utf-8"))["cases"][2]
    rate, scale = Fraction(case["sampling_rate"]), Fraction(case["noise_multiplier"])
    plan = Plan(rate, scale, case["steps"])
    found = epsilons(plan, Fraction(case["delta"]), ("remove",))
    with mp.workdps(30):
        stored = mp.mpf(case["epsilon"])
        assert abs(found["remove"] - stored) < stored * mp.mpf(10) ** -18


def test_two_characteristic_functions_give_what_one_gives() -> None:
    plan = Plan(0.1, 2.0, 50)
    one, two = deltas(plan, 1.0, 1e-4), two_tails(plan, 1.0, 1e-4)
    with mp.workdps(60):
        for direction in one:
            assert abs(one[direction] - two[direction]) < one[direction] * mp.mpf(10) ** -20


def test_the_lattice_brackets_levy() -> None:
    truth = float(deltas(Plan(0.01, 1.0, 10), 1.04, 1e-8)["remove"])
    bracket = lattice(0.01, 1.0, 10, "remove", epsilon=1.04).delta(1.04)
    assert bracket.lower <= truth <= bracket.upper
    assert bracket.upper - bracket.lower <= 5e-4 * truth
