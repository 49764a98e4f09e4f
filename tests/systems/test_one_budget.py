"""Trainings of digits at one budget: each step is counted first, and what differs is seen."""

from typing import Any

import numpy as np
import pytest

from hockeystick.errors import BudgetExhausted
from tests.systems.programs import program

pytestmark = pytest.mark.extras
pytest.importorskip("sklearn")


@pytest.fixture(scope="module")
def example() -> Any:
    return program("one_budget")


def trained(example: Any, steps: int, update: Any = None) -> Any:
    """Return a training of a plan of four steps after some of them."""
    plan = example.calibrated(3.0, examples=1438, steps=4)
    training = example.Training(plan, example.digits(), 0, example.words(0))
    own = example.fixed_threshold(plan.noise_multiplier, 1.0, 1.0)
    training.steps(update or own, steps)
    return training


def test_the_steps_of_a_plan_are_what_is_accounted(example: Any) -> None:
    found = trained(example, 4).outcome("s", 0.5, 3.0, {"own": True})
    assert found.checks == {"steps": True, "budget": True, "batches": True, "own": True}
    assert found.epsilon == pytest.approx(3.0, rel=1e-6)
    assert found.epsilon <= 3.0


def test_fewer_steps_more_budget_and_other_batches_are_seen(example: Any) -> None:
    few = trained(example, 3).outcome("s", 0.5, 3.0, {}).checks
    assert (few["steps"], few["batches"]) == (False, False)
    assert not trained(example, 4).outcome("s", 0.5, 2.9, {}).checks["budget"]


def test_each_step_is_counted_before_its_noise_is_drawn(example: Any) -> None:
    seen: list[int] = []

    def update(rows: Any, size: float, bits: Any) -> Any:
        assert rows.shape[1] == 650
        assert size == pytest.approx(256)
        seen.append(training.account.counted)
        return np.zeros(650)

    training = trained(example, 0)
    training.steps(update, 4)
    assert seen == [1, 2, 3, 4]
    with pytest.raises(BudgetExhausted):
        training.steps(update, 1)
    assert seen == [1, 2, 3, 4]
