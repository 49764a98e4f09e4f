"""What would meet a budget does, by proof; where nothing is solved for, a command says how."""

from typing import Any

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


def test_numbers_are_named_as_solve_takes_them_and_as_the_file_has_them() -> None:
    plan, asked = hs.Laplace(2.0) ** 5, ("hockeystick epsilon B.toml --delta 1e-07",)
    asks: Any = {"epsilon": 1.0, "delta": 1e-7, "quick": True}
    (of_file,) = remedies(plan, **asks, asked=asked, has_file=True)
    assert of_file.startswith("hockeystick solve B.toml --delta 1e-07 --parameter NAME")
    assert of_file.endswith(", NAME being one of scale, count (repeat in the file).")
    (of_text,) = remedies(plan, **asks, asked=asked)
    assert of_text.endswith(", NAME being one of scale, count.")
    (two,) = remedies(hs.Laplace(2.0) @ hs.Laplace(3.0), **asks, asked=asked, has_file=True)
    assert two.endswith(", NAME being one of parts[0].scale, parts[1].scale.")
    for name in ("scale", "count"):
        hs.calibrate(plan, name, hs.ApproxDP(1.0, 1e-7))
