"""The lattice accountant: narrow as asked, in agreement with the others, at any delta."""

from typing import Any

import pytest

import hockeystick as hs

STEP = hs.PoissonSubsampled(hs.Gaussian(1.1), rate=0.02)
PLANS = {
    "Gaussian": hs.Gaussian(2.0) ** 10,
    "one sampled Gaussian": STEP,
    "sampled Gaussians": STEP**300,
    "different Gaussians": hs.Gaussian(3.0) ** 4 @ STEP**100 @ hs.Gaussian(7.0),
    "Laplace once": hs.Laplace(0.8),
    "a mixture": hs.Laplace(3.0) ** 30 @ STEP**100,
}
each_plan = pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS.keys())


@each_plan
@pytest.mark.parametrize("tolerance", [1e-4, 1e-6])
@pytest.mark.parametrize("question", [("epsilon", 1e-3), ("epsilon", 1e-9), ("delta", 0.9)])
def test_it_is_as_narrow_as_asked_and_agrees_with_the_other_exact_accountants(
    plan: hs.Mechanism, tolerance: float, question: tuple[str, float]
) -> None:
    ask = hs.epsilon if question[0] == "epsilon" else hs.delta
    found = ask(plan, question[1], accountant="prv", tolerance=tolerance)
    assert isinstance(found, hs.Certified)
    other = ask(plan, question[1], tolerance=1e-10)
    assert isinstance(other, hs.Certified)
    assert found.lower <= other.upper
    assert other.lower <= found.upper
    assert found.relative_width <= tolerance


@pytest.mark.parametrize("tolerance", [0, -1, 1e-11, 0.2, float("nan"), "1e-4", None])
def test_a_tolerance_outside_its_domain_is_refused(tolerance: Any) -> None:
    with pytest.raises(
        hs.errors.ParameterError, match=r"tolerance must be a number from 1e-10 to 0\.1"
    ):
        hs.epsilon(hs.Gaussian(1), 1e-5, tolerance=tolerance)


def test_a_loss_of_which_only_divergences_are_known_is_refused_by_name() -> None:
    with pytest.raises(hs.errors.UnsupportedError, match="prv"):
        hs.epsilon(hs.ZCDP(0.1) @ hs.Laplace(2.0), 1e-5, accountant="prv")
