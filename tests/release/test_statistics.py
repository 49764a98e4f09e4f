"""Means, normalisations and covariances: sensitivities that are reached, noise, divisors."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import hockeystick as hs
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms import JointGaussian, PrivateCovariance
from hockeystick.release import covariance, mean, normalisation, principal_components
from hockeystick.release.noise import clipped_sum
from hockeystick.release.noise.clipped_sum import UNITS, clipped_integers
from hockeystick.release.statistics import _noisy_sums, products, rows_of
from tests.release.bits import none_left, seeded

ROWS = st.lists(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3), min_size=1, max_size=6).map(
    np.array
)
MOVES = {"add-remove": 1, "zero-out": 1, "replace-one": 2}


@settings(max_examples=200)
@given(rows=ROWS, other=ROWS, bound=st.floats(1e-3, 1e3))
def test_a_record_moves_the_exact_sum_by_at_most_the_bound(
    rows: Any, other: Any, bound: Any
) -> None:
    own, new = clipped_integers(rows, bound), clipped_integers(other[:1], bound)

    def square(steps: Any) -> int:
        return sum(int(step) ** 2 for step in steps)

    assert square(own[0]) <= UNITS**2
    assert square(own.sum(axis=0) - own[1:].sum(axis=0)) <= UNITS**2
    assert square(own[0] - new[0]) <= (2 * UNITS) ** 2


def _near_halves(steps: int) -> Any:
    """Return a row of which 150 entries, clipped, are next to half a unit, by so many floats."""
    row = np.r_[np.ones(150), np.random.default_rng(0).uniform(-8, 8, 50)]
    room = (1 - 2.0**-40) * UNITS - math.sqrt(200) / 2
    length = room / (np.floor(room / np.linalg.norm(row)) + 0.5)
    row[-1] = math.sqrt(length**2 - np.square(row[:-1]).sum())
    row[-1] += steps * math.ulp(row[-1])
    return row


def test_a_row_is_rounded_alone_as_beside_another_however_they_are_stored() -> None:
    """Columns stored together, as a data frame's are; each would move 150 entries by one."""
    other = np.r_[np.ones(150), np.zeros(50)]
    for steps in range(-40, 40):
        pair = np.asfortranarray([_near_halves(steps), other])
        both, first = clipped_integers(pair, 1.0), clipped_integers(pair[:1].copy("F"), 1.0)
        assert np.array_equal(both[0], first[0])
        assert int(np.square(both.sum(axis=0) - first[0]).sum()) <= UNITS**2


def test_a_row_that_is_scaled_too_long_is_scaled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As round-off might: whatever the first scale was, no row is longer than the units."""
    monkeypatch.setattr(clipped_sum, "_ROOM", 1.001)
    found = clipped_integers(np.array([[3.0, 4.0], [0.1, 0.0]]), 1.0)
    assert sum(int(step) ** 2 for step in found[0]) <= UNITS**2
    assert found[1, 0] == round(UNITS / 10)


@pytest.mark.parametrize(("adjacency", "most"), MOVES.items())
def test_neighbours_reach_the_sensitivity_that_the_noise_is_in_units_of(
    adjacency: Any, most: Any
) -> None:
    row = np.array([[3.0, 4.0]])
    other = {"add-remove": np.zeros((0, 2)), "zero-out": 0 * row, "replace-one": -row}[adjacency]
    first, second = (
        mean(hs.Gaussian(0), one, bound=2, size=1, adjacency=adjacency) for one in (row, other)
    )
    distance = float(np.linalg.norm(first - second))
    assert 2 * most * (1 - 1e-6) < distance <= 2 * most


@pytest.mark.parametrize(("adjacency", "most"), MOVES.items())
def test_the_noise_of_the_sum_has_the_deviation_that_is_charged(adjacency: Any, most: Any) -> None:
    rows, noise = np.full((10, 4000), 0.01), hs.Gaussian(3)
    clean = mean(hs.Gaussian(0), rows, bound=1, size=10, adjacency=adjacency)
    drawn = mean(noise, rows, bound=1, size=10, adjacency=adjacency, bits=seeded(3))
    scaled = (drawn - clean) * 10 / (3 * most)
    square = float((scaled**2).sum())
    assert 1e-6 < stats.chi2.sf(square, 4000) < 1 - 1e-6


def test_the_same_bits_double_the_noise_where_a_record_is_replaced() -> None:
    zeros = np.zeros((4, 6))
    added, replaced = (
        mean(hs.Gaussian(5), zeros, bound=1, size=4, adjacency=one, bits=seeded(9))
        for one in ("add-remove", "replace-one")
    )
    assert np.abs(replaced - 2 * added).max() <= 4 / UNITS


def test_without_clipping_it_is_the_mean_about_the_center() -> None:
    rows = np.array([10, 0, -5]) + np.random.default_rng(1).normal(size=(500, 3))
    found = mean(hs.Gaussian(0), rows, bound=10, center=[10, 0, -5], adjacency="zero-out")
    assert np.allclose(found, rows.mean(axis=0), atol=1e-5)


def test_a_private_count_is_released_and_charged_with_the_sum() -> None:
    account, both = hs.Accountant(), JointGaussian((0, 0))
    rows = np.full((40, 2), 0.25)
    assert mean(both, rows, bound=1, charge=account) == pytest.approx(0.25, abs=1e-5)
    assert str(account.plan) == "joint Gaussian (noise multipliers 0 and 0)"
    counts = [
        0.25 * 40 / float(mean(JointGaussian((0, 6)), rows, bound=1, bits=seeded(k))[0])
        for k in range(400)
    ]
    assert 1e-6 < stats.chi2.sf(((np.array(counts) - 40) ** 2 / 36).sum(), 400) < 1 - 1e-6


def test_no_count_below_one_is_divided_by() -> None:
    found = mean(JointGaussian((0, 0)), np.zeros((0, 2)), bound=1)
    assert found.tolist() == [0, 0]


NOISE = hs.Gaussian(1)
GOOD: Any = {"rows": [[0.5]], "bound": 1.0, "size": 1}


@pytest.mark.parametrize(
    ("mechanism", "given"),
    [
        (NOISE, {"size": None}),
        (JointGaussian((1, 1)), {}),
        (JointGaussian((1, 1)), {"size": None, "adjacency": "replace-one"}),
    ],
)
def test_what_is_divided_by_is_said_once(mechanism: Any, given: Any) -> None:
    with pytest.raises(IncompatibleError):
        mean(mechanism, **(GOOD | {"bits": none_left} | given))


def test_values_on_the_grid_are_released_exactly() -> None:
    found = mean(hs.Gaussian(0), [[0.75], [0.5]], bound=2, size=1)
    assert Fraction(float(found[0])) == Fraction(5, 4)


TWO_MOVES = {"add-remove": (1.0, 1.0), "zero-out": (1.0, 1.0), "replace-one": (2.0, math.sqrt(2.0))}


def sums(rows: Any, noises: Any, adjacency: Any, bits: Any = none_left) -> Any:
    data = rows_of(rows, 2.0, None)
    neighbours = hs.Adjacency(adjacency)
    return _noisy_sums(data, noises, neighbours, bits)


@pytest.mark.parametrize(("adjacency", "most"), TWO_MOVES.items())
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


@pytest.mark.parametrize(("adjacency", "most"), TWO_MOVES.items())
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


def test_what_a_normalisation_divides_by_is_said_once() -> None:
    with pytest.raises(IncompatibleError):
        normalisation(JointGaussian((1, 1, 1)), [[0.5]], bound=1, size=1, bits=none_left)


def test_other_rows_have_as_many_features() -> None:
    found = normalisation(JointGaussian((0, 0)), [[0.5]], bound=1, size=1)
    with pytest.raises(ParameterError, match=r"^rows"):
        found.apply([[1.0, 2.0]])


SQUARES = {"add-remove": 1.0, "zero-out": 1.0, "replace-one": math.sqrt(2.0)}


def asked_of(noise: Any, columns: Any, adjacency: Any = "add-remove") -> Any:
    return PrivateCovariance(noise, columns, adjacency)


@settings(max_examples=100)
@given(
    rows=st.lists(st.lists(st.floats(-9, 9), min_size=3, max_size=3), min_size=2, max_size=2),
    bits=st.sampled_from([10, 14, 18]),
)
def test_a_record_moves_the_exact_products_by_at_most_the_square(rows: Any, bits: Any) -> None:
    own = clipped_integers(np.array(rows), 1.5, 2**bits)
    one, other = (products(row[None], bits) for row in own)
    assert sum(int(x) ** 2 for x in one.ravel()) <= 2 ** (4 * bits)
    assert sum(int(x) ** 2 for x in (one - other).ravel()) <= 2 * 2 ** (4 * bits)


@pytest.mark.parametrize(("adjacency", "most"), SQUARES.items())
def test_neighbours_reach_the_sensitivity_of_the_mechanism(adjacency: Any, most: Any) -> None:
    """Rows on the axes, three times as long as the bound."""
    row = np.array([[6.0, 0.0]])
    other = {"add-remove": np.zeros((0, 2)), "zero-out": 0 * row}.get(adjacency, row[:, ::-1])
    own = asked_of(0, 2, adjacency)
    first, second = (covariance(own, one, bound=2, size=1) for one in (row, other))
    distance = float(np.linalg.norm(first - second))
    assert 4 * most * (1 - 1e-4) < distance <= 4 * most * (1 + 1e-12)
    assert own.squared_sensitivity == round(most**2)


@pytest.mark.parametrize("adjacency", SQUARES)
def test_the_noise_is_symmetric_with_half_the_variance_above_the_diagonal(adjacency: Any) -> None:
    own = asked_of(7, 60, adjacency)
    noise = np.array(
        [covariance(own, np.zeros((1, 60)), bound=2, size=1, bits=seeded(k)) for k in range(20)]
    ) / (7 * 4)
    assert np.array_equal(noise, noise.transpose(0, 2, 1))
    diagonal = np.diagonal(noise, axis1=1, axis2=2).ravel()
    upper = np.triu_indices(60, 1)
    above = noise[:, upper[0], upper[1]].ravel() * math.sqrt(2)
    for values in (diagonal, above):
        assert 1e-6 < stats.chi2.sf(float((values**2).sum()), values.size) < 1 - 1e-6


def test_sums_of_products_are_exact_beyond_the_integers_of_floats() -> None:
    """The sum passes 2^53, where floats would skip odd integers."""
    rows = np.full((2**18 + 3, 1), 2.0**18 - 1)
    assert int(products(rows, 18)[0, 0]) == (2**18 + 3) * (2**18 - 1) ** 2


def test_without_noise_it_is_the_covariance_about_the_center() -> None:
    rows = np.random.default_rng(2).normal(size=(300, 3)) + 4
    found = covariance(asked_of(0, 3, "zero-out"), rows, bound=20, center=rows.mean(axis=0))
    assert np.allclose(found, np.cov(rows.T, bias=True), atol=1e-3)


@pytest.mark.parametrize("noise", [2.0**20, 2.0**23])
def test_much_noise_is_drawn_on_a_coarser_grid(noise: Any) -> None:
    drawn = covariance(asked_of(noise, 30), np.zeros((1, 30)), bound=1, size=1, bits=seeded(5))
    scaled = np.diagonal(drawn) / noise
    assert 1e-6 < stats.chi2.sf(float((scaled**2).sum()), 30) < 1 - 1e-6


def test_components_are_the_eigenvectors_of_what_is_released() -> None:
    rows, own = np.random.default_rng(3).normal(size=(400, 5)) * [3, 1, 2, 0.1, 0.5], asked_of(1, 5)
    given: Any = {"bound": 8, "size": 400}
    matrix = covariance(own, rows, bits=seeded(6), **given)
    found = principal_components(own, rows, components=2, bits=seeded(6), **given)
    assert np.allclose(found.vectors @ found.vectors.T, np.eye(2))
    assert np.allclose(found.vectors @ matrix, found.variances[:, None] * found.vectors)
    assert np.allclose(found.variances, np.linalg.eigvalsh(matrix)[:-3:-1])
    scores = found.transform(rows)
    assert np.allclose(found.transform(found.restore(scores)), scores)


def test_a_private_size_is_not_divided_by() -> None:
    with pytest.raises(IncompatibleError, match="public size"):
        covariance(asked_of(1, 1), [[1.0]], bound=1, bits=none_left)


def test_what_is_projected_has_the_columns_of_the_components() -> None:
    found = principal_components(asked_of(0, 2, "zero-out"), [[1.0, 0.0]], bound=1, components=1)
    with pytest.raises(ParameterError, match=r"^rows"):
        found.transform([[1.0]])
    with pytest.raises(ParameterError, match=r"^scores"):
        found.restore([[1.0, 2.0]])
