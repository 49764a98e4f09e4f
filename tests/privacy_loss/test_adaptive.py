"""Selections that what was released before chooses, beside other mechanisms."""

import math
from itertools import permutations

import numpy as np
import pytest

import hockeystick as hs

RANGE, ODDS, RUNS = 0.8, 0.5, 2


def worst(order: tuple[str, ...], x: np.ndarray) -> np.ndarray:
    """Return the largest mean of ``(1 - x e^-L)_+`` where each selection is chosen by x."""
    if not order:
        return np.asarray(np.maximum(1.0 - x, 0.0))
    first, rest = order[0], order[1:]
    if first == "answer":
        p = 1.0 / (1.0 + math.exp(-ODDS))
        return np.asarray(
            p * worst(rest, x * math.exp(-ODDS)) + (1 - p) * worst(rest, x * math.exp(ODDS))
        )
    t = np.linspace(0.0, RANGE, 41)
    odds = np.expm1(t - RANGE) / math.expm1(-RANGE)
    high, low = (worst(rest, x[..., None] * np.exp(one)) for one in (-t, RANGE - t))
    return np.asarray((odds * high + (1 - odds) * low).max(axis=-1))


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_no_order_and_no_choice_costs_more(epsilon: float) -> None:
    plan = (hs.Exponential(RANGE) @ hs.RandomizedResponse(ODDS)) ** RUNS
    orders = set(permutations(("selection", "answer") * RUNS))
    cost = max(float(worst(order, np.array(math.exp(epsilon)))) for order in orders)
    found = hs.delta(plan, epsilon, accountant="prv").upper
    assert cost <= found <= 1.01 * cost


def test_alone_they_cost_what_they_do_in_closed_form() -> None:
    plan = hs.Exponential(0.1) ** 40
    whole = hs.epsilon(plan, 1e-6).upper
    assert whole <= hs.epsilon(plan, 1e-6, accountant="prv").upper <= whole * (1.0 + 1e-6)
