"""Trade-off functions of integer noise against the tests of Neyman and Pearson, by enumeration."""

from fractions import Fraction
from itertools import accumulate

import hockeystick as hs
from tests.oracles.added_integers import masses_of_sum

SIGMA, RUNS = 2.5, 7
RATES = (1e-9, 1e-6, 1e-3, 0.01, 0.05, 0.2, 0.5)


def best_tests() -> list[tuple[Fraction, Fraction]]:
    """Return both errors of each test that rejects for a large sum of the outputs.

    The loss rises with the sum, which a record moves by the number of runs.
    """
    _, mass = masses_of_sum(SIGMA, RUNS)
    below = [Fraction(0), *accumulate(mass)]
    above = [Fraction(0), *accumulate(mass[::-1])][::-1]
    return [(above[k], below[max(k - RUNS, 0)]) for k in range(len(above))][::-1]


def type_ii(tests: list[tuple[Fraction, Fraction]], rate: float) -> Fraction:
    """Return the type II error of the best test, which flips a coin at one sum."""
    k = next(k for k, (alpha, _) in enumerate(tests) if alpha > rate)
    (a, f), (b, g) = tests[k - 1], tests[k]
    return f + (g - f) * (Fraction(rate) - a) / (b - a)


def test_bounds_hold_the_errors_of_the_best_tests_and_are_near() -> None:
    f = hs.tradeoff(hs.DiscreteGaussian(SIGMA) ** RUNS)
    lower, upper = f.bounds(RATES)
    tests = best_tests()
    for k, rate in enumerate(RATES):
        truth = type_ii(tests, rate)
        assert lower[k] <= truth <= upper[k]
        assert upper[k] - lower[k] < 5e-5
        assert truth * (1 - Fraction(1, 10**10)) <= f(rate) <= truth
        assert 1 - truth <= f.power(rate) <= (1 - truth) * (1 + Fraction(1, 10**9))
