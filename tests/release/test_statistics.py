"""Means, normalisations, covariances and rates of groups: moves, noise and values."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import hockeystick as hs
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms import JointGaussian, PrivateCovariance
from hockeystick.release import GroupFairness, covariance, mean, normalisation, principal_components
from hockeystick.release.noise import clipped_sum
from hockeystick.release.noise.clipped_sum import UNITS, clipped_integers
from hockeystick.release.statistics import _noisy_sums, products, rows_of
from tests.release.bits import none_left, seeded

ROWS = st.lists(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3), min_size=1, max_size=6).map(
    np.array
)


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


def sums(noises: Any, rows: Any, adjacency: Any, bits: Any = none_left) -> Any:
    return _noisy_sums(rows_of(rows, 2.0, None), noises, hs.Adjacency(adjacency), bits)


def one_sum(noises: Any, rows: Any, adjacency: Any, bits: Any = none_left) -> Any:
    return [mean(hs.Gaussian(noises[0]), rows, bound=2, size=1, adjacency=adjacency, bits=bits)]


def products_of(noises: Any, rows: Any, adjacency: Any, bits: Any = none_left) -> Any:
    own = PrivateCovariance(noises[0], np.shape(rows)[1], adjacency)
    return [covariance(own, rows, bound=2, size=1, bits=bits)]


# What a record moves of its sums, of rows and of squares, in units of the bound 2 and its square.
RELEASED = [(one_sum, [2.0]), (sums, [2.0, 4.0]), (products_of, [4.0])]
TWICE = {one_sum: [2.0], sums: [2.0, math.sqrt(2)], products_of: [math.sqrt(2)]}
each_sum = pytest.mark.parametrize(("release", "units"), RELEASED)
adjacencies = pytest.mark.parametrize("adjacency", ["add-remove", "zero-out", "replace-one"])


def moves_of(release: Any, adjacency: Any) -> Any:
    return TWICE[release] if adjacency == "replace-one" else [1.0, 1.0]


@each_sum
@adjacencies
def test_neighbours_reach_the_sensitivities(release: Any, units: Any, adjacency: Any) -> None:
    """Opposite rows move the sum most, rows on two axes that of the squares."""
    row, reached = np.array([[9.0, 0.0]]), [False] * len(units)
    others = {"add-remove": [np.zeros((0, 2))], "zero-out": [0 * row]}
    for other in others.get(adjacency, [-row, row[:, ::-1]]):
        pair = [release((0.0, 0.0), one, adjacency) for one in (row, other)]
        moved = [float(np.linalg.norm(a - b)) for a, b in zip(*pair, strict=True)]
        most = [a * b for a, b in zip(units, moves_of(release, adjacency), strict=False)]
        assert all(own <= top * (1 + 1e-12) for own, top in zip(moved, most, strict=True))
        near = [own > top * (1 - 1e-3) for own, top in zip(moved, most, strict=True)]
        reached = [a or b for a, b in zip(reached, near, strict=True)]
    assert all(reached)


@each_sum
@adjacencies
def test_the_noise_has_the_deviations_that_are_charged(
    release: Any, units: Any, adjacency: Any
) -> None:
    noises = (3.0, 5.0)
    found = release(noises, np.zeros((1, 60)), adjacency, seeded(1))
    for drawn, z, unit, most in zip(
        found, noises, units, moves_of(release, adjacency), strict=False
    ):
        own = np.diagonal(drawn) if drawn.ndim == 2 else drawn
        assert 1e-6 < stats.chi2.sf(float(((own / (z * unit * most)) ** 2).sum()), 60) < 1 - 1e-6


def test_without_noise_the_statistics_about_the_center_come_out() -> None:
    rows = np.random.default_rng(4).normal(size=(800, 3)) * [1, 0.2, 0.5] + [3, 0, -1]
    given: Any = {"rows": rows, "bound": 9, "center": [3, 0, -1]}
    found = mean(hs.Gaussian(0), **given, adjacency="zero-out")
    assert np.allclose(found, rows.mean(axis=0), atol=1e-5)
    both = normalisation(JointGaussian((0, 0)), **given, adjacency="replace-one")
    normalised = both.apply(rows)
    assert np.allclose(normalised.mean(axis=0), 0, atol=1e-2)
    assert np.allclose(normalised.std(axis=0), 1, atol=1e-2)
    given["center"] = rows.mean(axis=0)
    own = covariance(PrivateCovariance(0, 3, "zero-out"), **given)
    assert np.allclose(own, np.cov(rows.T, bias=True), atol=1e-3)


ONE: Any = {"rows": [[0.5]], "bound": 1.0, "bits": none_left}


@pytest.mark.parametrize(
    ("release", "mechanism", "given"),
    [
        (mean, hs.Gaussian(1), {}),
        (mean, JointGaussian((1, 1)), {"size": 1}),
        (mean, JointGaussian((1, 1)), {"adjacency": "replace-one"}),
        (normalisation, JointGaussian((1, 1, 1)), {"size": 1}),
        (covariance, PrivateCovariance(1, 1), {}),
    ],
)
def test_what_is_divided_by_is_said_once(release: Any, mechanism: Any, given: Any) -> None:
    with pytest.raises(IncompatibleError):
        release(mechanism, **ONE, **given)


def test_a_private_count_is_released_and_charged_with_the_sum() -> None:
    account, both = hs.Accountant(), JointGaussian((0, 0))
    rows = np.full((40, 2), 0.25)
    assert mean(both, rows, bound=1, charge=account) == pytest.approx(0.25, abs=1e-5)
    assert account.plan == both
    assert mean(both, rows[:0], bound=1).tolist() == [0, 0]
    counts = [
        0.25 * 40 / float(mean(JointGaussian((0, 6)), rows, bound=1, bits=seeded(k))[0])
        for k in range(400)
    ]
    assert 1e-6 < stats.chi2.sf(((np.array(counts) - 40) ** 2 / 36).sum(), 400) < 1 - 1e-6


def test_a_feature_without_variance_is_divided_by_the_floor() -> None:
    rows = np.full((10, 2), 0.5)
    found = normalisation(JointGaussian((0, 0)), rows, bound=1, size=10, floor=0.25)
    assert found.deviation.tolist() == [0.25, 0.25]
    noisy = normalisation(JointGaussian((50, 50)), rows, bound=1, size=100)
    assert (noisy.deviation >= math.sqrt(50 / 100)).all()


def test_the_count_is_released_where_it_is_private() -> None:
    rows = np.random.default_rng(5).normal(size=(2000, 2))
    found = normalisation(JointGaussian((0, 0, 0)), rows, bound=9)
    known = normalisation(JointGaussian((0, 0)), rows, bound=9, size=2000)
    assert np.array_equal(found.deviation, known.deviation)
    other = normalisation(JointGaussian((0, 0, 300)), rows, bound=9, bits=seeded(2))
    assert not np.array_equal(other.deviation, known.deviation)


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


@adjacencies
def test_the_noise_is_symmetric_with_half_the_variance_above_the_diagonal(adjacency: Any) -> None:
    own = PrivateCovariance(7, 60, adjacency)
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


def test_components_are_the_eigenvectors_of_what_is_released() -> None:
    rows, own = (
        np.random.default_rng(3).normal(size=(400, 5)) * [3, 1, 2, 0.1, 0.5],
        PrivateCovariance(1, 5),
    )
    given: Any = {"bound": 8, "size": 400}
    matrix = covariance(own, rows, bits=seeded(6), **given)
    found = principal_components(own, rows, components=2, bits=seeded(6), **given)
    assert np.allclose(found.vectors @ found.vectors.T, np.eye(2))
    assert np.allclose(found.vectors @ matrix, found.variances[:, None] * found.vectors)
    assert np.allclose(found.variances, np.linalg.eigvalsh(matrix)[:-3:-1])
    scores = found.transform(rows)
    assert np.allclose(found.transform(found.restore(scores)), scores)


def records(seed: Any = 1) -> Any:
    random = np.random.default_rng(seed)
    return random.integers(0, 2, 400), random.integers(0, 2, 400), random.integers(0, 3, 400)


def test_rates_are_shares_and_differences_the_largest_less_the_least() -> None:
    predictions, labels, groups = records()
    found = GroupFairness.of(predictions, labels, groups)
    for group in range(3):
        own = groups == group
        truth, said = labels[own], predictions[own]
        assert found.positive_rates[group] == pytest.approx(said.mean())
        assert found.true_positive_rates[group] == pytest.approx(said[truth == 1].mean())
        assert found.false_positive_rates[group] == pytest.approx(said[truth == 0].mean())
        assert found.accuracies[group] == pytest.approx((said == truth).mean())
    rates = [found.positive_rates, found.true_positive_rates, found.accuracies]
    shown = [found.demographic_parity, found.equal_opportunity, found.accuracy_difference]
    assert shown == [np.ptp(one) for one in rates]
    assert found.equalized_odds == max(
        np.ptp(found.true_positive_rates), np.ptp(found.false_positive_rates)
    )


def test_a_group_without_such_records_has_no_rate_and_is_left_out() -> None:
    found = GroupFairness.of([1, 0, 1], [0, 1, 1], [0, 1, 2])
    assert np.isnan(found.true_positive_rates).tolist() == [True, False, False]
    assert found.equal_opportunity == 1
    assert math.isnan(GroupFairness.of([1], [1], [0]).equal_opportunity)
    assert found.equalized_odds == 1  # one group alone has false positives
    assert GroupFairness([[[-3, 7], [0, -1]]]).counts.tolist() == [[[0, 7], [0, 0]]]


WRONG: Any = [
    ([2, 0], [1, 1], [0, 0], "predictions"),
    ([1, 0], [1, 3], [0, 0], "labels"),
    ([1, 0], [1, 1], [0, -1], "groups"),
    ([1, 0], [1], [0, 0], "predictions, labels, groups"),
    ([0.5, 1.0], [1, 1], [0, 0], "predictions"),
    ([[1, 0]], [1, 1], [0, 0], "predictions"),
]


@pytest.mark.parametrize(("predictions", "labels", "groups", "name"), WRONG)
def test_bad_input_is_refused(predictions: Any, labels: Any, groups: Any, name: Any) -> None:
    with pytest.raises(ParameterError, match=rf"^{name}"):
        GroupFairness.of(predictions, labels, groups)
    with pytest.raises(ParameterError, match=r"^counts"):
        GroupFairness(np.zeros((2, 3), dtype=int))
