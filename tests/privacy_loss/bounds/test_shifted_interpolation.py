"""Shifted interpolation: the best shifts are sound and best, and quadratic losses attain them."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss.bounds.shifted_interpolation import LastOfCycle, Powers

C = [Fraction(1), Fraction(19, 20), Fraction(1, 2), Fraction(1, 10), Fraction(0)]


def cycle(
    c: Fraction, steps: int, period: int, across: Fraction | None = None, least: int | Fraction = 0
) -> LastOfCycle:
    return LastOfCycle(c, Fraction(least), steps, period, Fraction(1), across)


def square(noise: Fraction) -> float:
    return float(1 / noise**2)


def gaussian(factors: Sequence[Fraction], uses: Sequence[int]) -> Fraction:
    """Return mu^2 of the last iterate of ``x <- q_t x + u_t v + N(0, 1)``, v having q's sign."""
    signal = noise = Fraction(0)
    for q, used in zip(factors, uses, strict=True):
        signal = abs(q) * signal + used
        noise = q * q * noise + 1
    return signal**2 / noise


@pytest.mark.parametrize("c", C)
@pytest.mark.parametrize(("steps", "period"), [(1, 1), (9, 1), (5, 2), (8, 2), (11, 3), (3, 7)])
def test_no_quadratic_losses_cost_more_and_the_best_cost_as_much(
    c: Fraction, steps: int, period: int
) -> None:
    found = 1 / cycle(c, steps, period).noise_lower() ** 2
    draw = np.random.default_rng(3)
    best = Fraction(0)
    for offset in range(min(period, steps)):
        uses = [int((steps - offset - t) % period == 0) for t in range(1, steps + 1)]
        for _ in range(60):
            q = [c * Fraction(int(draw.integers(-8, 9)), 8) for _ in range(steps)]
            best = max(best, gaussian(q, uses), gaussian([c] * steps, uses))
    # No noise but from the first use on, and the best factor before the last one.
    last = [int((steps - t) % period == 0) for t in range(1, steps + 1)]
    first = last.index(1)
    factors = [Fraction(0)] * (first + 1) + [c] * (steps - first - 1)
    for share in range(201):
        if first < steps - 1:
            factors[-1] = c * share / 200
        best = max(best, gaussian(factors, last))
    assert best <= found * (1 + Fraction(1, 10**1000))
    assert float(best) == pytest.approx(float(found), rel=1e-4)


@pytest.mark.parametrize("least", [Fraction(1, 4), Fraction(4, 5)])
@pytest.mark.parametrize(("steps", "period"), [(5, 2), (11, 3), (3, 7), (12, 4), (6, 3)])
def test_the_lower_end_is_that_of_a_quadratic_run(steps: int, period: int, least: Fraction) -> None:
    c = Fraction(9, 10)
    one = cycle(c, steps, period, least=least)
    last = [int((steps - t) % period == 0) for t in range(1, steps + 1)]
    first = last.index(1)
    runs = []
    for share in range(101):
        factors = [least] * (first + 1) + [c] * (steps - first - 1)
        if first < steps - 1:
            factors[-1] = least + (c - least) * share / 100
        runs.append(gaussian(factors, last))
    assert square(one.noise_attained()) == pytest.approx(float(max(runs)), rel=1e-3)
    assert square(one.noise_attained()) >= float(max(runs)) * (1 - 1e-12)
    assert one.noise_attained() > one.noise_lower()


@pytest.mark.parametrize("exponent", [1, 7, 10**6])
@pytest.mark.parametrize("distance", [Fraction(1, 10**40), Fraction(3, 10**7), Fraction(1, 3)])
def test_powers_next_to_one_lose_no_digits(exponent: int, distance: Fraction) -> None:
    with mp.workdps(200):
        found = Powers(1 - distance).gap(exponent)
        truth = 1 - (1 - mp.mpf(distance.numerator) / distance.denominator) ** exponent
        assert abs(found / truth - 1) < mp.mpf(10) ** -150


def test_the_least_cost_after_a_diameter_has_its_closed_form() -> None:
    # (1+c) (2 - (1-c) d) d where the best number of steps is whole: c^n = 1 - d (1-c).
    c, n = Fraction(9, 10), 7
    d = (1 - c**n) / (1 - c)
    assert square(cycle(c, 1000, 1, d).noise_lower()) == pytest.approx(
        float((1 + c) * (2 - (1 - c) * d) * d), rel=1e-14
    )
    assert square(cycle(Fraction(1), 1000, 1, Fraction(12)).noise_lower()) == 48.0


# c, steps, period, the distance before, and the least energy of shifts that SLSQP found.
SOLVED = [
    ("1", 7, 1, "0.3", 1.69),
    ("1", 10, 3, "1", 1.5),
    ("1", 1, 1, "0.3", 1.0),
    ("0.95", 5, 2, "6", 1.9462664),
    ("0.95", 8, 2, None, 2.4132382),
    ("0.95", 10, 3, "1.7", 1.885447),
    ("0.95", 3, 7, "6", 1.0),
    ("0.5", 7, 1, "1.7", 2.9344048),
    ("0.5", 8, 2, "1", 1.25),
    ("0.5", 10, 3, "0.3", 1.0045),
    ("0.5", 5, 2, None, 1.2941176),
    ("0.1", 5, 2, "1.7", 1.010099),
    ("0.1", 10, 3, None, 1.0000992),
    ("0", 8, 2, "1", 1.0),
]


@pytest.mark.parametrize(("c", "steps", "period", "across", "energy"), SOLVED)
def test_no_shifts_that_a_solver_finds_cost_less_and_some_cost_as_little(
    c: str, steps: int, period: int, across: str | None, energy: float
) -> None:
    start = None if across is None else Fraction(across)
    found = square(cycle(Fraction(c), steps, period, start).noise_lower())
    assert found == pytest.approx(energy, rel=2e-5)
