"""Where a plan's numbers show why its epsilon is 0 or infinite, the reason is said."""

from typing import Any

import pytest

import hockeystick as hs
from hockeystick.answers import cautions

SHORT: Any = {"rate": 0.01, "noise_multiplier": 1.0}
NO_NOISE = "noise 0 hides nothing: epsilon is infinite, and there is no guarantee."


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (hs.DPSGD(steps=0, **SHORT), "0 steps: nothing is released."),
        (
            hs.DPSGD(epochs=0, examples=600, batch_size=6, noise_multiplier=0),
            "0 steps: nothing is released.",
        ),
        (hs.Laplace(1) ** 0, "0 runs: nothing is released."),
        (hs.DPSGD(steps=0, **SHORT) @ hs.Gaussian(0) ** 0, "0 runs: nothing is released."),
        (hs.Laplace(1) ** 0 @ hs.Gaussian(2), ""),
        (hs.DPSGD(steps=0, extra=hs.Gaussian(2), **SHORT), ""),
        (hs.DPSGD(steps=1, **SHORT), ""),
    ],
)
def test_nothing_that_runs_is_why_epsilon_is_zero(plan: hs.Mechanism, said: str) -> None:
    found = hs.epsilon(plan, 1e-6)
    assert (found.upper == 0.0) == bool(said)
    assert [one.text for one in cautions(found, plan, delta=1e-6)] == ([said] if said else [])


@pytest.mark.parametrize(
    ("plan", "delta", "said"),
    [
        (hs.Gaussian(0), 1e-6, NO_NOISE),
        (hs.Gaussian(0), 0.9, NO_NOISE),
        (hs.Laplace(0) @ hs.Gaussian(3), 1e-6, NO_NOISE),
        (hs.DiscreteGaussian(0), 1e-6, NO_NOISE),
        (hs.DPSGD(rate=0.01, steps=9, noise_multiplier=0), 1e-6, NO_NOISE),
        (hs.PoissonSubsampled(hs.Gaussian(0), 0.01) ** 3, 1e-6, NO_NOISE),
        (hs.ApproxDP(1, 0.5), 1e-6, "an infinite epsilon is no guarantee: it also holds for"),
        (hs.Gaussian(0) ** 0 @ hs.Gaussian(3), 1e-6, ""),
        (hs.DPSGD(rate=0.01, steps=1, noise_multiplier=0), 0.02, ""),
        (hs.PoissonSubsampled(hs.Gaussian(0), 0.01), 0.02, ""),
    ],
)
def test_no_noise_is_why_epsilon_is_infinite(plan: hs.Mechanism, delta: float, said: str) -> None:
    found = hs.epsilon(plan, delta)
    assert (found.lower == float("inf")) == bool(said)
    told = [one.text for one in cautions(found, plan, delta=delta) if one.about == "epsilon"]
    assert [one[: len(said)] for one in told] == ([said] if said else [])
