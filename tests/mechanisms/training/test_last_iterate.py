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


def test_the_conditions_are_said() -> None:
    run = make(2, 10, batch_size=30, diameter=3, gradient_bound=0.5, convexity=0.25, **NUMBERS)
    told = " ".join(run.assumptions)
    for words in (
        "a convex set of diameter at most 3",
        "the divisor 30 is public",
        "is 0.25-strongly convex and 5-smooth on both data sets",
        "Clipping the gradients of a loss destroys that",
        "norm at most 0.5 wherever it is evaluated",
        "2 times 0.5 in each coordinate",
        "cut into 4 batches without looking at them",
        "no checkpoint, no early stopping",
    ):
        assert words in told
    assert "there is no projection" in " ".join(make(2, 10, **NUMBERS).assumptions)


def test_random_batches_are_said_to_be_drawn_afresh_and_secret() -> None:
    run = make(2, 10, batch_size=30, batches="fixed-size", **NUMBERS)
    assert (run.period, run.rate) == (1, Fraction(3, 10))
    assert "drawn afresh and kept secret" in " ".join(run.assumptions)
    assert "fixed-size 30 of 100" in str(run)
