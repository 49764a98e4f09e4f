"""Private normalisation: both queries' sensitivities, the noise of each, and who pays for it."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import hockeystick as hs
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms import JointGaussian
from hockeystick.release import normalisation
from hockeystick.release.statistics import normalisations
from hockeystick.release.statistics._data import rows_of
from tests.release.bits import none_left, seeded

MOVES = {"add-remove": (1.0, 1.0), "zero-out": (1.0, 1.0), "replace-one": (2.0, math.sqrt(2.0))}


def sums(rows: Any, noises: Any, adjacency: Any, bits: Any = none_left) -> Any:
    data = rows_of(rows, 2.0, None)
    neighbours = hs.Adjacency(adjacency)
    return normalisations._noisy_sums(data, noises, neighbours, bits)


@pytest.mark.parametrize(("adjacency", "most"), MOVES.items())
def test_neighbours_reach_both_sensitivities(adjacency: Any, most: Any) -> None:
    row = np.array([[9.0, 0.0]])
    others = {"add-remove": [np.zeros((0, 2))], "zero-out": [0 * row]}
    # opposite rows move the sum most, rows on two axes that of the squares
    for other in others.get(adjacency, [-row, row[:, ::-1]]):
        pair = [sums(one, (0.0, 0.0), adjacency) for one in (row, other)]
        moved = [float(np.linalg.norm(a - b)) for a, b in zip(*pair, strict=True)]
        assert moved[0] <= 2 * most[0] * (1 + 1e-12)
        assert moved[1] <= 4 * most[1] * (1 + 1e-12)
        reached = [moved[0] > 2 * most[0] * (1 - 1e-3), moved[1] > 4 * most[1] * (1 - 1e-3)]
        assert any(reached)


@pytest.mark.parametrize(("adjacency", "most"), MOVES.items())
def test_the_noise_of_both_sums_has_the_deviations_that_are_charged(
    adjacency: Any, most: Any
) -> None:
    first, second = sums(np.zeros((1, 3000)), (3.0, 5.0), adjacency, seeded(1))
    for drawn, scale in ((first, 3 * 2 * most[0]), (second, 5 * 4 * most[1])):
        assert 1e-6 < stats.chi2.sf(float(((drawn / scale) ** 2).sum()), 3000) < 1 - 1e-6


def test_without_noise_features_come_out_with_mean_0_and_deviation_1() -> None:
    rows = np.random.default_rng(4).normal(size=(800, 3)) * [1, 0.2, 0.5] + [3, 0, -1]
    found = normalisation(
        JointGaussian((0, 0)), rows, bound=9, center=[3, 0, -1], adjacency="replace-one"
    )
    normalised = found.apply(rows)
    assert np.allclose(normalised.mean(axis=0), 0, atol=1e-2)
    assert np.allclose(normalised.std(axis=0), 1, atol=1e-2)


def test_a_feature_without_variance_is_divided_by_the_floor() -> None:
    rows = np.full((10, 2), 0.5)
    found = normalisation(JointGaussian((0, 0)), rows, bound=1, size=10, floor=0.25)
    assert found.deviation.tolist() == [0.25, 0.25]
    noisy = normalisation(JointGaussian((50, 50)), rows, bound=1, size=100)
    assert (noisy.deviation >= math.sqrt(50 / 100)).all()


def test_a_training_is_charged_for_the_statistics_too() -> None:
    both, account = JointGaussian((6, 6)), hs.Accountant()
    normalisation(both, [[0.5]], bound=1, size=1, charge=account)
    assert str(account.plan) == "joint Gaussian (noise multipliers 6 and 6)"
    plain: Any = {"rate": 0.02, "steps": 300, "noise_multiplier": 1.2}
    alone, whole = hs.DPSGD(**plain), hs.DPSGD(**plain, extra=both)
    spent = hs.epsilon(whole, 1e-5)
    assert spent.lower > hs.epsilon(alone, 1e-5).upper
    assert spent.upper == hs.epsilon(alone @ both, 1e-5).upper


def test_the_count_is_released_where_it_is_private() -> None:
    rows = np.random.default_rng(5).normal(size=(2000, 2))
    found = normalisation(JointGaussian((0, 0, 0)), rows, bound=9)
    known = normalisation(JointGaussian((0, 0)), rows, bound=9, size=2000)
    assert np.array_equal(found.deviation, known.deviation)
    other = normalisation(JointGaussian((0, 0, 300)), rows, bound=9, bits=seeded(2))
    assert not np.array_equal(other.deviation, known.deviation)


WRONG: Any = [
    (hs.Gaussian(1), {}, "mechanism"),
    (JointGaussian((1,)), {}, "mechanism"),
    (JointGaussian((1, math.inf)), {}, "mechanism"),
    (JointGaussian((1, 2.0**20)), {}, "mechanism"),
    (JointGaussian((1, 1)), {"rows": [[math.inf]]}, "rows"),
    (JointGaussian((1, 1)), {"floor": 0}, "floor"),
    (JointGaussian((1, 1)), {"floor": 1e200}, "floor"),
    (JointGaussian((1, 1)), {"floor": 1e-200}, "floor"),
    (JointGaussian((1, 1)), {"size": 1e-300}, "size"),
]


@pytest.mark.parametrize(("mechanism", "given", "name"), WRONG)
def test_bad_input_is_refused_before_anything_is_charged(
    mechanism: Any, given: Any, name: Any
) -> None:
    account, good = hs.Accountant(), {"rows": [[0.5]], "bound": 1, "size": 1}
    with pytest.raises(ParameterError, match=f"^{name}"):
        normalisation(mechanism, **(good | {"charge": account, "bits": none_left} | given))
    assert account.plan == hs.Accountant().plan


def test_what_is_divided_by_is_said_once() -> None:
    with pytest.raises(IncompatibleError):
        normalisation(JointGaussian((1, 1, 1)), [[0.5]], bound=1, size=1, bits=none_left)


def test_other_rows_have_as_many_features() -> None:
    found = normalisation(JointGaussian((0, 0)), [[0.5]], bound=1, size=1)
    with pytest.raises(ParameterError, match=r"^rows"):
        found.apply([[1.0, 2.0]])
