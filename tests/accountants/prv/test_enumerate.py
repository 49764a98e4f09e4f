"""All combinations of atoms, against sums over every sequence of outcomes."""

import itertools
import math

import pytest

import hockeystick as hs
from hockeystick.accountants.prv._enumerate import combinations
from hockeystick.privacy_loss import CellLoss, LaplaceLoss, RandomizedResponsePairLoss

THREE = {1.0: math.exp(1.0), 0.0: 1.0, -1.0: 1.0}
TOTAL = sum(THREE.values())


def by_sequences(count: int, rest: tuple[float, float], epsilon: float) -> float:
    """Return delta of ternary response and one binary one, over every sequence of outcomes."""
    own, win = rest
    delta = 0.0
    for outcomes in itertools.product(THREE, repeat=count):
        p = math.prod(THREE[one] / TOTAL for one in outcomes)
        for loss, q in ((own, win), (-own, 1.0 - win)):
            delta += p * q * max(-math.expm1(epsilon - sum(outcomes) - loss), 0.0)
    return delta


@pytest.mark.parametrize("epsilon", [0.0, 0.7, 1.7, 3.2])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_combinations_are_what_every_sequence_adds_up_to(count: int, epsilon: float) -> None:
    plan = hs.RandomizedResponse(1.0, 3) ** count @ hs.PureDP(0.3)
    exact = by_sequences(count, (0.3, 1.0 / (1.0 + math.exp(-0.3))), epsilon)
    found = hs.delta(plan, epsilon, accountant="prv")
    assert isinstance(found, hs.Certified)
    assert found.lower <= exact * (1.0 + 1e-12)
    assert exact * (1.0 - 1e-12) <= found.upper
    assert found.relative_width <= 1e-11


def test_a_density_or_too_many_combinations_are_left_to_the_lattice() -> None:
    lattice_only: list[tuple[CellLoss, int]] = [(LaplaceLoss(1.0), 2)]
    many: list[tuple[CellLoss, int]] = [
        (RandomizedResponsePairLoss(0.1 + 0.01 * k), 9) for k in range(20)
    ]
    assert combinations(lattice_only, 1.0) is None
    assert combinations(many, 1.0) is None


def test_far_from_where_it_is_tilted_to_the_upper_end_is_loose_not_wrong() -> None:
    terms: list[tuple[CellLoss, int]] = [
        (RandomizedResponsePairLoss(0.5), 2),
        (RandomizedResponsePairLoss(0.3), 1),
    ]
    steep = combinations(terms, 1e6)
    assert steep is not None
    assert steep.upper(0.0) >= 0.0
    assert steep.lower(0.0) == -math.inf
