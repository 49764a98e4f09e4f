"""So much noise that one step tells next to nothing: contour, lattice and arbitrary precision."""

import pytest

import hockeystick as hs

PLANS = (
    (1200.0, 0.01, 10**5, 1e-5),
    (7101.0, 0.3, 10**5, 1e-6),
    (1e5, 0.5, 10**8, 1e-9),
    (9e5, 0.9, 10**9, 1e-5),
)


@pytest.mark.parametrize(("noise", "rate", "steps", "delta"), PLANS)
def test_much_noise_over_many_steps_is_certified_to_a_billionth(
    noise: float, rate: float, steps: int, delta: float
) -> None:
    plan = hs.PoissonSubsampled(hs.Gaussian(noise), rate) ** steps
    contour = hs.epsilon(plan, delta, accountant="contour")
    prv = hs.epsilon(plan, delta, accountant="prv")
    assert contour.relative_width < 1e-9
    assert prv.lower <= contour.lower <= contour.upper <= prv.upper
