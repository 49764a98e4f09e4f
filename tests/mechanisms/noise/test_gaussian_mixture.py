"""The Gaussian mechanism with a random sensitivity: its description."""

from hockeystick.adjacency import Adjacency
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
