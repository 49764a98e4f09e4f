"""Private covariances: the sensitivity that is reached, the noise on and above the diagonal."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import hockeystick as hs
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms import PrivateCovariance
from hockeystick.release import covariance, principal_components
from hockeystick.release.statistics.clipped import clipped_integers
from hockeystick.release.statistics.covariances import products
from tests.release.bits import none_left, seeded

MOVES = {"add-remove": 1.0, "zero-out": 1.0, "replace-one": math.sqrt(2.0)}


def told(noise: Any, columns: Any, adjacency: Any = "add-remove") -> Any:
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


@pytest.mark.parametrize(("adjacency", "most"), MOVES.items())
def test_neighbours_reach_the_sensitivity_of_the_mechanism(adjacency: Any, most: Any) -> None:
    """Rows on the axes, three times as long as the bound."""
    row = np.array([[6.0, 0.0]])
    other = {"add-remove": np.zeros((0, 2)), "zero-out": 0 * row}.get(adjacency, row[:, ::-1])
    own = told(0, 2, adjacency)
    first, second = (covariance(own, one, bound=2, size=1) for one in (row, other))
    distance = float(np.linalg.norm(first - second))
    assert 4 * most * (1 - 1e-4) < distance <= 4 * most * (1 + 1e-12)
    assert own.squared_sensitivity == round(most**2)


@pytest.mark.parametrize("adjacency", MOVES)
def test_the_noise_is_symmetric_with_half_the_variance_above_the_diagonal(adjacency: Any) -> None:
    own = told(7, 60, adjacency)
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
    found = covariance(told(0, 3, "zero-out"), rows, bound=20, center=rows.mean(axis=0))
    assert np.allclose(found, np.cov(rows.T, bias=True), atol=1e-3)


@pytest.mark.parametrize("noise", [2.0**20, 2.0**23])
def test_much_noise_is_drawn_on_a_coarser_grid(noise: Any) -> None:
    drawn = covariance(told(noise, 30), np.zeros((1, 30)), bound=1, size=1, bits=seeded(5))
    scaled = np.diagonal(drawn) / noise
    assert 1e-6 < stats.chi2.sf(float((scaled**2).sum()), 30) < 1 - 1e-6


def test_components_are_the_eigenvectors_of_what_is_released() -> None:
    rows, own = np.random.default_rng(3).normal(size=(400, 5)) * [3, 1, 2, 0.1, 0.5], told(1, 5)
    given: Any = {"bound": 8, "size": 400}
    matrix = covariance(own, rows, bits=seeded(6), **given)
    found = principal_components(own, rows, components=2, bits=seeded(6), **given)
    assert np.allclose(found.vectors @ found.vectors.T, np.eye(2))
    assert np.allclose(found.vectors @ matrix, found.variances[:, None] * found.vectors)
    assert np.allclose(found.variances, np.linalg.eigvalsh(matrix)[:-3:-1])
    scores = found.transform(rows)
    assert np.allclose(found.transform(found.restore(scores)), scores)


@pytest.mark.parametrize("release", [covariance, principal_components])
def test_the_mechanism_is_charged_once(release: Any) -> None:
    account, more = hs.Accountant(), {} if release is covariance else {"components": 1}
    release(told(2, 2), [[1.0, 0.0]], bound=1, size=1, charge=account, **more)
    assert str(account.plan) == str(told(2, 2))


WRONG: Any = [
    (hs.Gaussian(1), {}, "mechanism"),
    (told(1, 3), {}, "mechanism"),
    (told(math.inf, 2), {}, "mechanism"),
    (told(2.0**23 * (1 + 2.0**-52), 2), {}, "mechanism"),
    (told(1, 2), {"rows": [["a", "b"]]}, "rows"),
    (told(1, 2), {"bound": -1}, "bound"),
    (told(1, 2), {"components": 3}, "components"),
    (told(1, 2), {"components": 0}, "components"),
]


@pytest.mark.parametrize(("mechanism", "given", "name"), WRONG)
def test_bad_input_is_refused_before_anything_is_charged(
    mechanism: Any, given: Any, name: Any
) -> None:
    account = hs.Accountant()
    good = {"rows": [[1.0, 0.0]], "bound": 1, "size": 1, "components": 1}
    with pytest.raises(ParameterError, match=f"^{name}"):
        principal_components(mechanism, **(good | {"charge": account, "bits": none_left} | given))
    assert account.plan == hs.Accountant().plan


def test_a_private_size_is_not_divided_by() -> None:
    with pytest.raises(IncompatibleError, match="public size"):
        covariance(told(1, 1), [[1.0]], bound=1, bits=none_left)


def test_what_is_projected_has_the_columns_of_the_components() -> None:
    found = principal_components(told(0, 2, "zero-out"), [[1.0, 0.0]], bound=1, components=1)
    with pytest.raises(ParameterError, match=r"^rows"):
        found.transform([[1.0]])
    with pytest.raises(ParameterError, match=r"^scores"):
        found.restore([[1.0, 2.0]])
