"""300 random plans and seven hard ones against truths computed by another route.

``tests/oracles/levy.py`` inverts the characteristic function on the imaginary axis in high
precision; its 20-digit answers are stored beside it.
"""

import json
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.accountants.composition import composition_of
from hockeystick.accountants.contour import Contour
from hockeystick.accountants.interval import Interval
from hockeystick.accountants.prv import PRV

ORACLES = Path(__file__).parents[1] / "oracles"
DIRECTIONS = ("remove", "add")
CONTOUR, LATTICES = Contour(), PRV()


def cases(file: str) -> list[Any]:
    """Return one test case per plan and direction."""
    plans = json.loads((ORACLES / file).read_text(encoding="utf-8"))
    return [(plan, name) for plan in plans for name in DIRECTIONS]


def interval_and_truth(
    plan: Any, direction: str, accountant: Contour | PRV = CONTOUR
) -> tuple[Interval, float]:
    """Return an accountant's interval for one direction, and the truth."""
    step = hs.PoissonSubsampled(hs.Gaussian(plan["noise_multiplier"]), plan["rate"])
    cost = composition_of(step ** plan["steps"], accountant.name)
    terms = cost.removing if direction == "remove" else cost.adding
    return accountant.epsilon_of(terms, plan["delta"]), float(plan[direction]["epsilon"])


@pytest.mark.parametrize(("plan", "direction"), cases("random_plans.json"))
def test_the_truth_lies_in_the_interval(plan: Any, direction: str) -> None:
    found, truth = interval_and_truth(plan, direction)
    assert found.lower <= truth <= found.upper


@pytest.mark.parametrize(("plan", "direction"), cases("random_plans.json"))
def test_the_truth_lies_between_the_lattices(plan: Any, direction: str) -> None:
    found, truth = interval_and_truth(plan, direction, LATTICES)
    assert found.lower <= truth <= found.upper


@pytest.mark.parametrize(("plan", "direction"), cases("special_plans.json"))
def test_hard_plans_have_narrow_intervals(plan: Any, direction: str) -> None:
    found, truth = interval_and_truth(plan, direction)
    assert found.lower <= truth <= found.upper
    assert found.upper - found.lower <= 1e-5 * truth
    assert abs(found.estimate - truth) <= 1e-9 * truth
