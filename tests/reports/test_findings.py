"""What a report says is what the library answers."""

import pytest

import hockeystick as hs
from hockeystick.reports import Findings
from hockeystick.reports.findings import remedies
from tests.reports.conftest import TRAINING


def test_the_attack_is_what_the_trade_off_function_says(found: Findings) -> None:
    f = hs.tradeoff(TRAINING)
    attack = found.attack
    assert attack is not None
    assert attack.headline == (0.01, f.power(0.01))
    assert (attack.advantage, attack.bayes_error) == (f.advantage, f.bayes_error(0.5))
    assert attack.table[1] == pytest.approx((0.01, f.power(0.01), f(0.01)), rel=1e-12)
    for points, bounds in ((attack.misses, f.bounds), (attack.finds, f.power_bounds)):
        for point in points[::7]:
            assert (point.lower, point.upper) == pytest.approx(bounds(point.at), rel=1e-9)


RUN = hs.DPSGD(rate=0.01, steps=1000, noise_multiplier=1.0)


def test_the_noise_and_the_length_that_are_named_meet_the_budget() -> None:
    noise, length = remedies(RUN, epsilon=1.0, delta=1e-5, quick=True)
    louder = hs.DPSGD(rate=0.01, steps=1000, noise_multiplier=float(noise.split()[2]))
    shorter = hs.DPSGD(rate=0.01, steps=int(length.split()[2]), noise_multiplier=1.0)
    for plan in (louder, shorter):
        assert 0.99 < hs.epsilon(plan, delta=1e-5).upper <= 1.0


def test_of_other_plans_the_command_is_named() -> None:
    (one,) = remedies(hs.Gaussian(1.0), epsilon=1.0, delta=1e-5, quick=True)
    assert one == "`hockeystick solve` finds what meets that budget."
