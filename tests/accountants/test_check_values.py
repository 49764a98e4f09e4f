"""Published check values and exact references, each accountant against its own formula."""

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from mpmath import mp

import hockeystick as hs
from hockeystick.accountants.base import composition_of
from hockeystick.accountants.contour import Contour
from hockeystick.accountants.prv import PRV
from hockeystick.privacy_loss import SampledGaussianLoss
from hockeystick.privacy_loss.bounds.moments import log_cks_factor

ORACLES = Path(__file__).parents[1] / "oracles"
REFERENCE = (ORACLES / "epsilon_reference.json").read_text(encoding="utf-8")
CASES: list[dict[str, Any]] = json.loads(REFERENCE)["cases"]


def name_of(case: dict[str, Any]) -> str:
    keys = ("sampling_rate", "noise_multiplier", "steps", "delta", "direction")
    return " ".join(str(case[key]) for key in keys)


def holds(answer: Any, truth: str) -> bool:
    """Return whether an interval holds a decimal, to the last of the decimal's digits."""
    with mp.workdps(60):
        number = mp.mpf(truth)
        digits = len(truth.lower().split("e")[0].replace(".", "").lstrip("0"))
        last = abs(number) * mp.mpf(10) ** (1 - digits)
        return bool(answer.lower - last <= number <= answer.upper + last)


def test_the_conversion_factor_is_that_of_canonne_kamath_and_steinke() -> None:
    order, tau, epsilon = 10, 1, 3
    found = math.exp((order - 1) * (tau - epsilon) + log_cks_factor(order - 1))
    assert found == pytest.approx(5.90040620015666167320335816846e-10, rel=1e-12)


DELTAS = [
    (0.1, 2.0, 50, True, 1.0, "0.00135525177912980502559200087801"),
    (0.1, 2.0, 50, True, 3.0, "1.38467307696103016807362890479e-11"),
    (0.1, 2.0, 50, False, 1.0, "2.07188670100435853770955239256e-4"),
    (0.01, 1.0, 1000, True, 1.0, "2.612420578626923815571174269e-3"),
    (0.01, 1.0, 1000, True, 2.0, "2.665571924761790252417294603e-6"),
    (0.01, 1.0, 1000, True, 8.0, "3.14211030220527e-26"),
    (0.01, 1.0, 1000, False, 1.0, "7.945901735717182519953604361e-4"),
]


@pytest.mark.parametrize(("rate", "noise", "steps", "removing", "epsilon", "delta"), DELTAS)
def test_the_contour_holds_delta_in_either_direction(
    rate: float, noise: float, steps: int, removing: bool, epsilon: float, delta: str
) -> None:
    terms = ((SampledGaussianLoss(rate, noise, removing), steps),)
    found = Contour().delta_of(terms, epsilon)
    assert holds(found, delta)
    assert found.upper - found.lower <= 1e-6 * found.estimate
    if removing:
        plan = hs.PoissonSubsampled(hs.Gaussian(noise), rate) ** steps
        answer = hs.delta(plan, epsilon, accountant="contour")
        assert (answer.lower, answer.upper) == (found.lower, found.upper)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_the_contour_holds_the_reference_epsilon_in_either_direction(case: dict[str, Any]) -> None:
    loss = SampledGaussianLoss(
        Fraction(case["sampling_rate"]),
        float(case["noise_multiplier"]),
        case["direction"] == "remove",
    )
    found = Contour().epsilon_of(((loss, case["steps"]),), float(case["delta"]))
    truth = mp.mpf(case["epsilon"])
    assert found.lower <= truth <= found.upper
    assert found.upper - found.lower <= 1e-6 * found.estimate
    assert found.estimate == pytest.approx(float(truth), rel=1e-9)


def test_too_many_digits_are_refused_by_the_accountant_that_was_asked() -> None:
    plan = hs.PoissonSubsampled(hs.Gaussian(0.9), 0.01024) ** 2930
    with pytest.raises(
        hs.errors.UnsupportedError, match="1000 digits take too long; ask for fewer"
    ):
        hs.epsilon(plan, 1e-5, digits=1000)


PLANS = json.loads((ORACLES / "random_plans.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("accountant", [Contour(), PRV()], ids=["contour", "prv"])
@pytest.mark.parametrize(
    ("plan", "direction"), [(plan, way) for plan in PLANS for way in ("remove", "add")]
)
def test_the_truth_lies_in_the_interval(
    plan: Any, direction: str, accountant: Contour | PRV
) -> None:
    step = hs.PoissonSubsampled(hs.Gaussian(plan["noise_multiplier"]), plan["rate"])
    cost = composition_of(step ** plan["steps"], accountant.name)
    terms = cost.removing if direction == "remove" else cost.adding
    found = accountant.epsilon_of(terms, plan["delta"])
    assert found.lower <= float(plan[direction]["epsilon"]) <= found.upper
