"""The Gaussian mechanism with a random sensitivity: its description."""

from typing import Any

import pytest

from hockeystick.adjacency import Adjacency
from hockeystick.errors import ParameterError
from hockeystick.mechanisms import GaussianMixture


def test_sequences_are_kept_as_tuples_of_floats() -> None:
    mechanism = GaussianMixture(2, [0, 1], (0.5, 0.5))
    assert mechanism.sensitivities == (0.0, 1.0)
    assert mechanism.probabilities == (0.5, 0.5)
    assert mechanism == GaussianMixture(2.0, (0.0, 1.0), [0.5, 0.5])
    assert hash(mechanism) == hash(GaussianMixture(2.0, (0.0, 1.0), [0.5, 0.5]))
    assert mechanism.adjacency is Adjacency.ADD_REMOVE


def test_thirds_add_up_to_one() -> None:
    assert GaussianMixture(1, (0, 1, 2), (1 / 3, 1 / 3, 1 / 3)).probabilities[0] == 1 / 3


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((-1, (0, 1), (0.5, 0.5)), "noise_multiplier"),
        ((1, (0, -1), (0.5, 0.5)), "sensitivities"),
        ((1, (0, float("inf")), (0.5, 0.5)), "sensitivities"),
        ((1, (), ()), "sensitivities"),
        ((1, "01", (0.5, 0.5)), "sensitivities"),
        ((1, 3, (0.5, 0.5)), "sensitivities"),
        ((1, (0, float("nan")), (0.5, 0.5)), "sensitivities"),
        ((1, (0, 1), (0.5, 1.5)), "probabilities"),
        ((1, (0, 1), (0.5,)), "probabilities"),
        ((1, (0, 1), (0.5, 0.499)), "probabilities"),
    ],
)
def test_what_is_outside_its_domain_is_refused_by_name(arguments: Any, name: str) -> None:
    with pytest.raises(ParameterError) as caught:
        GaussianMixture(*arguments)
    assert caught.value.name == name


def test_the_text_gives_each_move_and_its_chance() -> None:
    text = "Gaussian with random sensitivity (noise multiplier 2, 0 at 0.75, 1.5 at 0.25)"
    assert str(GaussianMixture(2, (0, 1.5), (0.75, 0.25))) == text
