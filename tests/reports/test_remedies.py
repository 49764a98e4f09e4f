"""What would meet a budget does, by proof; where nothing is solved for, a command says how."""

import hockeystick as hs
from hockeystick.reports.remedies import remedies

TRAINING = hs.DPSGD(rate=0.01, steps=1000, noise_multiplier=1.0)


def test_the_noise_and_the_length_that_are_named_meet_the_budget() -> None:
    noise, length = remedies(TRAINING, epsilon=1.0, delta=1e-5, quick=True)
    louder = hs.DPSGD(rate=0.01, steps=1000, noise_multiplier=float(noise.split()[2]))
    shorter = hs.DPSGD(rate=0.01, steps=int(length.split()[2]), noise_multiplier=1.0)
    for plan in (louder, shorter):
        assert 0.99 < hs.epsilon(plan, delta=1e-5).upper <= 1.0


def test_of_other_plans_the_command_is_named() -> None:
    (one,) = remedies(hs.Gaussian(1.0), epsilon=1.0, delta=1e-5, quick=True)
    call = 'hs.calibrate(plan, "noise_multiplier", hs.ApproxDP(1, 1e-05)) finds'
    assert one.startswith(call)
    asked = ("hockeystick epsilon 'my plan.toml' --group 2 --delta 1e-05", "hockeystick report x")
    (several,) = remedies(TRAINING, epsilon=1.0, delta=1e-5, quick=False, asked=asked)
    named = "solve 'my plan.toml' --group 2 --delta 1e-05 --parameter NAME --epsilon 1 finds"
    assert named in several
    assert several.endswith(", NAME being one of noise_multiplier, rate, steps, examples_per_user.")
