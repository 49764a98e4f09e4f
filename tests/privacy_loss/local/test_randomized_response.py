"""The loss of randomized response with any number of categories."""

import pytest

import hockeystick as hs
from hockeystick.numerics.multiprecision import mp
from hockeystick.privacy_loss import (
    RandomizedResponseLoss,
    RandomizedResponsePairLoss,
    dominating_pair,
)


def test_delta_of_ten_categories_is_the_known_value() -> None:
    with mp.workdps(30):
        found = RandomizedResponseLoss(1.0, 10).delta(mp.mpf("0.5"))
        assert mp.almosteq(found, mp.mpf("0.0912728140025937886263491456854"), mp.mpf(10) ** -28)


@pytest.mark.parametrize("categories", [3, 4, 100, 10**15])
@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 3.0, 40.0, 900.0])
def test_the_masses_are_those_of_the_definition(epsilon: float, categories: int) -> None:
    atoms = RandomizedResponseLoss(epsilon, categories).atoms()
    with mp.workdps(60):
        e = mp.exp(mp.mpf(repr(epsilon)))
        total = e + categories - 1
        truths = (1 / total, (categories - 2) / total, e / total)
        for log_p, error, truth in zip(atoms.log_p, atoms.error, truths, strict=True):
            assert abs(log_p - mp.log(truth)) <= error


def test_two_categories_are_the_loss_of_a_pure_guarantee() -> None:
    assert dominating_pair(hs.RandomizedResponse(0.8)) == dominating_pair(hs.PureDP(0.8))
    assert dominating_pair(hs.RandomizedResponse(0.8)).removing == RandomizedResponsePairLoss(0.8)


@pytest.mark.parametrize("runs", [2, 7])
def test_runs_cost_what_their_outputs_cost(runs: int) -> None:
    found = hs.delta(hs.RandomizedResponse(0.5, 6) ** runs, epsilon=0.9)
    with mp.workdps(40):
        e = mp.exp(mp.mpf("0.5"))
        masses = {1: e / (e + 5), 0: 4 / (e + 5), -1: 1 / (e + 5)}
        sums = {0: mp.one}
        for _ in range(runs):
            new: dict[int, mp.mpf] = {}
            for place, mass in sums.items():
                for step, one in masses.items():
                    new[place + step] = new.get(place + step, mp.zero) + mass * one
            sums = new
        level = mp.mpf("0.9")
        truth = mp.fsum(
            mass * (1 - mp.exp(level - mp.mpf("0.5") * place))
            for place, mass in sums.items()
            if mp.mpf("0.5") * place > level
        )
        assert found.lower <= truth <= found.upper
        assert found.relative_width < 1e-4
