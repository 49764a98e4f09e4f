"""Profiles for groups by a chain of single records: the formula, and what it may never be below."""

import math

import numpy as np
import pytest

from hockeystick.numerics.multiprecision import mp
from hockeystick.tradeoffs.profiles.chain import ChainProfile
from hockeystick.tradeoffs.profiles.profile import GaussianProfile, PerfectPrivacy, Profile

EPSILONS = np.array([0.0, 1e-300, 1e-13, 1e-11, 1e-3, 0.1, 1.0, 3.7, 20.0, 300.0])


class Unknown(Profile):
    """A profile of which nothing is known but the lower end."""

    @property
    def supremum(self) -> float:
        return math.inf

    def at(self, epsilon: np.ndarray) -> object:  # type: ignore[override]
        ones = np.ones_like(epsilon)
        found = PerfectPrivacy().at(epsilon)
        return found._replace(estimate=ones, upper=ones)


@pytest.mark.parametrize("size", [2, 3, 40, 10**6])
@pytest.mark.parametrize("mu", [1e-9, 0.01, 0.5])
def test_the_bound_is_the_sum_of_a_chain_rounded_up(size: int, mu: float) -> None:
    one = GaussianProfile(mu)
    found = ChainProfile(Unknown(), one, size)
    for epsilon, upper in zip(EPSILONS, found.at(EPSILONS).upper, strict=True):
        link = one.precisely(epsilon / size)[2]
        with mp.workdps(40):
            part = mp.mpf(float(epsilon)) / size
            terms = size if part == 0 else mp.expm1(size * part) / mp.expm1(part)
            exact = min(terms * mp.mpf(link), 1)
            assert upper >= exact * (1 - mp.mpf(10) ** -12)
            assert upper <= exact * (1 + mp.mpf(10) ** -9) + mp.mpf(10) ** -300
        assert found.precisely(float(epsilon))[2] == upper


@pytest.mark.parametrize("size", [2, 5, 30])
def test_it_is_never_below_what_a_group_loses(size: int) -> None:
    """That of Gaussians, which lose the same at each step of the way."""
    whole = GaussianProfile(0.1 * size)
    found = ChainProfile(Unknown(), GaussianProfile(0.1), size).at(EPSILONS)
    assert (found.upper >= whole.at(EPSILONS).lower).all()


def test_the_smaller_bound_is_taken() -> None:
    whole = GaussianProfile(0.2)
    found = ChainProfile(whole, GaussianProfile(0.1), 2).at(EPSILONS)
    assert (found.upper == whole.at(EPSILONS).upper).all()
    none = ChainProfile(whole, PerfectPrivacy(), 2).at(EPSILONS)
    assert (none.upper <= 1e-300).all()


def test_beyond_exponentials_nothing_is_promised() -> None:
    found = ChainProfile(Unknown(), GaussianProfile(0.1), 3)
    assert found.at(np.array([700.0, 1e6])).upper.tolist() == [1.0, 1.0]
