"""The loss of staircase noise, against integrals of the two densities of the definition."""

from functools import cache
from itertools import pairwise
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.mechanisms import Staircase
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import dominating_pair
from hockeystick.privacy_loss.noise.staircase import StaircaseLoss

EPSILONS = ("0.5", "1", "3.5")
GAMMAS = (None, "0.1", "0.25", "0.45", "0.5", "0.75", "1")
SHIFTS = tuple(mp.mpf(k) / 15 for k in range(1, 16))
# More than the mass of the steps that are left out.
LEFT_OUT = mp.mpf("1e-14")
LEVELS = ("-1.5", "-0.1", "0", "0.2", "0.9", "2.8")

each_epsilon = pytest.mark.parametrize("epsilon", EPSILONS)
each_gamma = pytest.mark.parametrize("gamma", GAMMAS)


def number(gamma: str | None) -> float | None:
    return None if gamma is None else float(gamma)


class Noise:
    """The density of the definition: e^-k on [k, k + gamma), e^-(k+1) on [k + gamma, k + 1)."""

    def __init__(self, epsilon: Any, gamma: Any) -> None:
        self.small = mp.exp(-epsilon)
        self.gamma = 1 / (1 + mp.exp(epsilon / 2)) if gamma is None else mp.mpf(gamma)
        self.steps = int(mp.ceil(mp.mpf(40) / epsilon))
        self.height = (1 - self.small) / (2 * (self.gamma + self.small * (1 - self.gamma)))

    def __call__(self, x: Any) -> Any:
        k = mp.floor(abs(x))
        return self.height * self.small ** (k if abs(x) - k < self.gamma else k + 1)

    def edges(self) -> list[Any]:
        """Where the density jumps, as far as it counts."""
        ends = [k + place for k in range(self.steps) for place in (mp.zero, self.gamma)]
        return [side * end for end in ends for side in (-1, 1)]


@cache
def pieces(epsilon: str, gamma: str | None, shift: Any) -> tuple[tuple[Any, Any], ...]:
    """The masses of both densities between any two places where one of them jumps."""
    with mp.workdps(30):
        noise = Noise(mp.mpf(epsilon), gamma)
        edges = sorted({*noise.edges(), *(end + shift for end in noise.edges())})
        middles = [((low + high) / 2, high - low) for low, high in pairwise(edges)]
        return tuple((noise(x) * width, noise(x - shift) * width) for x, width in middles)


def truth(epsilon: str, gamma: str | None, shift: Any, level: str) -> Any:
    """Integrate the positive part of p - e^level q."""
    with mp.workdps(30):
        factor = mp.exp(mp.mpf(level))
        return mp.fsum(max(p - factor * q, 0) for p, q in pieces(epsilon, gamma, shift))


@each_epsilon
@each_gamma
def test_delta_is_the_integral_of_the_densities_one_sensitivity_apart(
    epsilon: str, gamma: str | None
) -> None:
    loss = StaircaseLoss(float(epsilon), number(gamma))
    assert loss.opposite == loss
    if gamma != "0.5":
        assert dominating_pair(Staircase(loss.epsilon, loss.gamma)) == (loss, loss)
    for level in LEVELS:
        exact = truth(epsilon, gamma, mp.one, level)
        with mp.workdps(30):
            assert abs(loss.delta(mp.mpf(level)) - exact) < LEFT_OUT
        if float(level) >= 0:
            found = hs.delta(Staircase(float(epsilon), number(gamma)), float(level))
            assert found.lower - LEFT_OUT <= exact <= found.upper + LEFT_OUT
            assert found.upper - found.lower <= 1e-13 * found.upper


@each_epsilon
@each_gamma
def test_no_smaller_distance_costs_more(epsilon: str, gamma: str | None) -> None:
    for level in LEVELS:
        deltas = [truth(epsilon, gamma, shift, level) for shift in SHIFTS]
        assert all(less <= more + LEFT_OUT for less, more in pairwise(deltas))
        if 0 <= float(level) < float(epsilon):
            assert deltas[0] < deltas[-1] / 2


@each_epsilon
@each_gamma
def test_the_masses_of_the_atoms_are_those_of_the_definition(
    epsilon: str, gamma: str | None
) -> None:
    loss = StaircaseLoss(float(epsilon), number(gamma))
    atoms = loss.atoms()
    with mp.workdps(30):
        own = mp.mpf(epsilon)
        for level, log_p, error in zip(*atoms, strict=True):
            mass = mp.fsum(
                p
                for p, q in pieces(epsilon, gamma, mp.one)
                if abs(mp.log(p / q) - mp.mpf(float(level))) < own / 3
            )
            assert abs(log_p - mp.log(mass)) <= error + 1e-13
    assert list(atoms.loss)[-1] == loss.supremum == float(epsilon)


@pytest.mark.parametrize("gamma", [0.1, 0.4999999999999999, 0.5000000000000001, 0.7, 1.0])
@pytest.mark.parametrize("epsilon", [1e-9, 0.3, 50.0])
def test_a_perturbation_encloses_what_its_numbers_may_mean(epsilon: float, gamma: float) -> None:
    """The float and the decimal that it prints as; in units that leave no digit out."""
    loss = StaircaseLoss(epsilon, gamma)
    with mp.workdps(60):
        lower, upper = (loss.delta(mp.mpf(epsilon) / 3, sign * 4) for sign in (-1, 1))
        for reading in (repr(gamma), gamma):
            noise = Noise(mp.mpf(repr(epsilon)), reading)
            inside = 2 * noise.height * min(noise.gamma, mp.mpf(0.5))
            inside += 2 * noise.height * noise.small * max(mp.mpf(0.5) - noise.gamma, 0)
            variation = inside / (1 - noise.small)
            level = mp.mpf(epsilon) / 3 - mp.mpf(repr(epsilon))
            assert lower < -variation * mp.expm1(level) < upper
