"""Noisy gradient descent of which the last model is released: what is asked for, and said."""

from fractions import Fraction
from typing import Any

import pytest

import hockeystick as hs
from hockeystick.errors import IncompatibleError

NUMBERS: dict[str, Any] = {"examples": 100, "step_size": 0.1, "smoothness": 5.0}
make = hs.mechanisms.LastIterate


def test_a_batch_of_all_records_is_full_and_a_smaller_one_takes_turns() -> None:
    assert make(1, 10, **NUMBERS).batches == "full-batch"
    assert make(1, 10, **NUMBERS).period == 1
    assert make(1, 10, batch_size=30, **NUMBERS).batches == "cyclic"
    assert make(1, 10, batch_size=30, **NUMBERS).period == 4


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"smoothness": 20.1}, "at most 2, where gradient steps contract; 0.1 times 20.1"),
        ({"diameter": 1}, "depends on gradient_bound"),
        ({"batch_size": 10, "batches": "full-batch"}, "one of all 100 examples"),
        ({"batch_size": 10, "adjacency": "add-remove"}, "move others to other batches"),
    ],
)
def test_what_has_no_theorem_is_refused_with_its_reason(given: Any, reason: str) -> None:
    with pytest.raises(IncompatibleError, match=reason):
        make(1, 10, **{**NUMBERS, **given})


def test_numbers_mean_their_decimals() -> None:
    run = make(1, 10, convexity=0.3, diameter=0.7, gradient_bound=0.1, **NUMBERS)
    assert run.factors == (Fraction(1, 2), Fraction(97, 100))
    assert run.moves_across == 7000
    assert make(1, 10, **NUMBERS).moves_across is None
    assert make(1, 10, gradient_bound=1, **NUMBERS).moves_across is None
