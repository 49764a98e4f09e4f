"""Running sums: the noise of a tree's nodes and of a factorization, within a bound on rounding."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hockeystick import mechanisms as m
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms.streams.strategies import Strategy
from hockeystick.release import CorrelatedNoise, matrix_factorization, tree_aggregation
from hockeystick.release import streams as tree_module
from hockeystick.release._values import grid_of
from hockeystick.release.samplers import rounded_gaussian
from hockeystick.release.streams import MOST, _prepared, memory
from tests.release.bits import none_left, seeded


def nodes_of(rows: int) -> list[tuple[int, int]]:
    """Return the nodes (first, last row) that make up the rows from 1 on, by powers of two."""
    found, first = [], 1
    for power in range(rows.bit_length() - 1, -1, -1):
        if rows >> power & 1:
            found.append((first, first + 2**power - 1))
            first += 2**power
    return found


@pytest.mark.parametrize(("size", "leaves"), [(1, 1), (3, 21), (17, 8)])
def test_sums_are_those_of_the_nodes_of_a_tree(size: int, leaves: int) -> None:
    mechanism = m.TreeAggregation(1.5, leaves=leaves)
    rows = np.random.default_rng(1).normal(size=(leaves, size))
    run = tree_aggregation(mechanism, size, 2.0, bits=seeded(9))
    grid = grid_of(mechanism, 1.5, 2.0, math.isqrt(size - 1) + 1)
    assert Fraction(grid.scale) >= Fraction(3, 2) * (
        2 / Fraction(2) ** grid.exponent + Fraction(math.sqrt(size))
    )
    bits = seeded(9)
    # A node that is used is drawn when its last row comes in.
    noise = {nodes_of(t)[-1]: rounded_gaussian(grid.scale, size, bits=bits) for t in
             range(1, leaves + 1)}  # fmt: skip
    whole = np.rint(np.ldexp(rows, -grid.exponent)).astype(np.int64)
    for t, row in enumerate(rows, start=1):
        expected = whole[:t].sum(axis=0) + sum(noise[node] for node in nodes_of(t))
        assert run.add(row).tolist() == np.ldexp(expected.astype(float), grid.exponent).tolist()
        assert run.rows == t
        assert len(nodes_of(t)) <= mechanism.height


@pytest.mark.parametrize("sign", [1, -1])
def test_sums_of_the_largest_rows_do_not_wrap(sign: int) -> None:
    """Two of 2^62 steps are 2^63, which as 64 bits is negative and its own size."""
    run = tree_aggregation(m.TreeAggregation(0.0, leaves=5), 1, 1.0)
    assert run.add([sign * 2.0**42]) == sign * 2.0**42
    for row in (sign * 2.0**42, 1e300):
        with pytest.raises(ParameterError, match=r"^row must be"):
            run.add([row])
    assert run.rows == 1


def test_a_sum_has_the_noise_of_each_of_its_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter(2.0**k for k in range(7))
    monkeypatch.setattr(
        tree_module, "rounded_gaussian", lambda *_, **__: np.array([next(drawn)], dtype=np.int64)
    )
    run = tree_aggregation(m.TreeAggregation(1.0, leaves=7), 1, 2.0**20)
    sums = [run.add([0.0])[0] for _ in range(7)]
    assert [one / sums[0] for one in sums] == [1, 2, 6, 8, 24, 40, 104]


STRATEGIES: tuple[Strategy, ...] = (
    m.Toeplitz([1]),
    m.Toeplitz([2, 1.5, 0, -0.25]),
    m.Toeplitz([-1, -0.5, -0.25]),
    m.SquareRoot(),
    m.SquareRoot(5),
    m.BandedInverse([1]),
    m.BandedInverse([1.5, -0.75, 0, 0.3]),
    m.BandedInverse.square_root(4),
    m.BufferedToeplitz([0.5], [0.25]),
    m.BufferedToeplitz([0.3, 0.2, 0.01], [0.25, 0.9, 0.999]),
)


def encoded(strategy: Strategy, rows: Any) -> list[Fraction]:
    """Return C over its main diagonal, times a row of integers, exactly."""
    rounds = len(rows)
    diagonals = strategy.diagonals(rounds)
    whole = [one / diagonals[0] for one in diagonals]
    return [
        sum((whole[k] * int(rows[t - k]) for k in range(min(len(whole), t + 1))), Fraction(0))
        for t in range(rounds)
    ]


def noise_of(strategy: Strategy, fresh: Any, most: float = MOST) -> Any:
    """Return all rows of integer noise, for one column each."""
    kept, _ = memory(strategy, len(fresh), most)
    found = []
    for one in fresh:
        row = kept.row(one)
        kept.keep(one, row)
        found.append(row)
    return np.stack(found)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("most", [2**36, 2**50])
def test_the_largest_noise_of_the_worst_signs_has_room(strategy: Strategy, most: int) -> None:
    """As large as can be, with the signs of the inverse: the last row is as large as any."""
    rounds = 60
    impulse = np.zeros((rounds, 1), dtype=np.int64)
    impulse[0] = 2**40
    signs = np.sign(noise_of(strategy, impulse)[::-1])
    fresh = np.where(signs < 0, -1, 1) * (most - 1)
    noise, error = noise_of(strategy, fresh, most), memory(strategy, rounds, most)[1]
    found = encoded(strategy, noise[:, 0])
    pairs = zip(found, fresh[:, 0], strict=True)
    assert max(abs(one - int(z)) for one, z in pairs) <= error


def test_halves_that_all_round_up_are_within_the_bound_of_an_inverse() -> None:
    """Each round of 127/128 Z is half a step too much, of which C makes 63."""
    strategy = m.BandedInverse([1, -127 / 128])
    fresh = np.full((600, 1), 64, dtype=np.int64)
    noise, error = noise_of(strategy, fresh), memory(strategy, 600)[1]
    furthest = max(abs(one - 64) for one in encoded(strategy, noise[:, 0]))
    assert 60 < furthest <= error < 400


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_noise_covers_the_rounding_of_rows_and_of_noise(strategy: Strategy) -> None:
    rounds, entries, z, own = 30, 5, 1.5, 0.75
    mechanism = m.MatrixFactorization(z, m.Encoder.of(strategy, rounds))
    _, grid = _prepared(mechanism, entries, own)
    # So little noise is among the least sizes that are tried.
    error = memory(strategy, rounds, 2.0**36)[1]
    apart = own / 2.0**grid.exponent + math.sqrt(entries)
    needed = z * (apart + 2 * error * math.sqrt(rounds * entries))
    assert grid.scale * abs(float(strategy.diagonals(1)[0])) >= needed


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_neighbours_are_no_further_apart_than_the_noise_is_for(strategy: Strategy) -> None:
    """What was released is fixed, and the fresh noise of each data set is worked out from it."""
    rounds, entries, z = 24, 2, 1.7
    encoder = m.Encoder.of(strategy, rounds, participations=3, separation=8)
    mechanism = m.MatrixFactorization(z, encoder)
    one, grid = _prepared(mechanism, entries, 1.0)
    other, _ = _prepared(mechanism, entries, 1.0)
    rows = np.random.default_rng(4).normal(size=(rounds, entries))
    steps = np.stack([grid.steps("row", row) for row in rows])
    moved = steps.copy()
    for t in (0, 8, 16):
        length = math.floor(2.0**-grid.exponent / math.sqrt(entries)) + 1
        moved[t] += length
    bits, square = seeded(8), 0
    for x, y in zip(steps, moved, strict=True):
        fresh = rounded_gaussian(grid.scale, entries, bits=bits)
        noise = one.row(fresh)
        released = x + noise
        # The fresh noise on the neighbouring data set: what makes the same release.
        none = np.zeros_like(fresh)
        needed = released - y - other.row(none)
        one.keep(fresh, noise)
        other.keep(needed, released - y)
        square += sum(int(a) ** 2 for a in fresh - needed)
    assert math.sqrt(square) <= grid.scale * (encoder.sensitivity / z) * (1 + 1e-12)
    known = encoder.square - encoder.least_square < encoder.square / 2**200
    if known and strategy != STRATEGIES[2]:
        assert math.sqrt(square) > grid.scale * (encoder.sensitivity / z) * (1 - 1e-3)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_sums_are_those_of_rows_and_noise(strategy: Strategy) -> None:
    rounds = 15
    mechanism = m.MatrixFactorization(0.8, m.Encoder.of(strategy, rounds))
    rows = np.random.default_rng(1).normal(size=(rounds, 4))
    run = matrix_factorization(mechanism, 4, 2.0, bits=seeded(9))
    _, grid = _prepared(mechanism, 4, 2.0)
    bits = seeded(9)
    fresh = np.stack([rounded_gaussian(grid.scale, 4, bits=bits) for _ in range(rounds)])
    expected = np.stack([grid.steps("row", row) for row in rows]) + noise_of(
        strategy, fresh, 2.0**36
    )
    total = np.zeros(4)
    assert run.latest.tolist() == [0.0] * 4
    for t, row in enumerate(rows, start=1):
        found = run.add(row)
        total = total + np.ldexp(expected[t - 1].astype(float), grid.exponent)
        assert found.tolist() == total.tolist()
        assert (
            run.latest.tolist() == np.ldexp(expected[t - 1].astype(float), grid.exponent).tolist()
        )
        assert run.rows == t
        found *= math.nan


def run_of(rounds: int, z: float = 1.0, size: int = 1, **kind: Any) -> Any:
    """Return a run with the square root."""
    return matrix_factorization(
        m.MatrixFactorization(z, m.Encoder.square_root(rounds)), size, 1.0, **kind
    )


def tree_of(rounds: int, z: float = 1.0, size: int = 1, **kind: Any) -> Any:
    """Return a run of a tree."""
    return tree_aggregation(m.TreeAggregation(z, leaves=rounds), size, 1.0, **kind)


each_run = pytest.mark.parametrize("begin", [tree_of, run_of])


@each_run
def test_a_run_ends_with_its_rounds(begin: Any) -> None:
    run = begin(2)
    run.add([0.0])
    run.add([0.0])
    with pytest.raises(IncompatibleError, match="for 2 rounds"):
        run.add([0.0])
    assert run.rows == 2
    with pytest.raises(IncompatibleError, match="for 0 rounds"):
        tree_of(0, bits=none_left).add([0.0])


@each_run
def test_a_row_whose_noise_failed_is_not_added(begin: Any) -> None:
    fails = [True, False]

    def bits(count: Any) -> Any:
        if fails.pop(0):
            raise OSError("no entropy")
        return np.full(count, 2**63, dtype=np.uint64)

    run = begin(2, bits=bits)
    with pytest.raises(OSError, match="no entropy"):
        run.add([1.0])
    assert run.rows == 0
    assert 0 < float(run.add([1.0])[0]) - 1.0 < 1  # of u = 1/2 alone


@each_run
def test_without_noise_the_sums_come_out(begin: Any) -> None:
    run = begin(3, 0.0, 2, bits=none_left)
    found = [run.add(row).tolist() for row in ([1, 2], [0.5, 0.25], [-1, 0])]
    assert found == [[1.0, 2.0], [1.5, 2.25], [0.5, 2.25]]


@each_run
@pytest.mark.parametrize(
    "row", [[math.nan, 1], [1.0], [[1.0, 2.0]], 3.0, ["a", "b"], None, [2.0**61, 0.0], [1e300, 0.0]]
)
def test_bad_rows_are_named(begin: Any, row: Any) -> None:
    run = begin(2, size=2, bits=none_left)
    with pytest.raises(ParameterError, match=r"^row must be"):
        run.add(row)
    assert run.rows == 0


def dense(strategy: Strategy, rounds: int) -> Any:
    """Return C as an array of floats."""
    found = [float(one) for one in strategy.diagonals(rounds)]
    padded = np.array(found + [0.0] * (rounds - len(found)))
    places = np.subtract.outer(np.arange(rounds), np.arange(rounds))
    return np.where(places >= 0, padded[np.abs(places)], 0.0)


def noise_rows(strategy: Strategy, fresh: Any) -> Any:
    """Return all rows of noise."""
    noise = CorrelatedNoise(m.Encoder.of(strategy, len(fresh)))
    return np.stack([noise.next(one) for one in fresh])


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("rounds", [1, 2, 40])
def test_unit_vectors_become_the_inverse(strategy: Strategy, rounds: int) -> None:
    """Row t of C^-1 I: so the noise is linear in Z, of covariance C^-1 C^-T, and causal."""
    found = noise_rows(strategy, np.eye(rounds))
    assert np.abs(dense(strategy, rounds) @ found - np.eye(rounds)).max() < 1e-12
    assert np.abs(found - np.linalg.inv(dense(strategy, rounds))).max() < 1e-12
    assert (np.triu(found, 1) == 0.0).all()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_becomes_of_a_row_does_not_matter_to_the_next(strategy: Strategy) -> None:
    fresh = np.random.default_rng(3).normal(size=(12, 2)).astype(np.float32)
    noise, found = CorrelatedNoise(m.Encoder.of(strategy, 12)), []
    for one in fresh:
        given = one.copy()
        row = noise.next(given)
        found.append(row.copy())
        row *= math.nan
        given *= math.nan
    assert np.array_equal(found, noise_rows(strategy, fresh))
    assert found[0].dtype == np.float32


def test_rows_end_with_the_rounds() -> None:
    noise = CorrelatedNoise(m.Encoder.square_root(2))
    assert noise.encoder == m.Encoder.square_root(2)
    for rows in (1, 2):
        noise.next(np.zeros(3))
        assert noise.rows == rows
        with pytest.raises(ParameterError, match=r"^fresh must be of shape \(3,\)"):
            noise.next(np.zeros(1))
    with pytest.raises(IncompatibleError, match="for 2 rounds"):
        noise.next(np.zeros(3))
    assert noise.rows == 2


HUGE: Any = [1e-308, 1e308]


@pytest.mark.parametrize(
    "encoder",
    [
        3,
        None,
        m.Toeplitz([1]),
        m.Encoder.of_matrix([[1]]),
        m.Encoder.toeplitz([0, 1], 5),
        m.Encoder.toeplitz(HUGE, 5),
        m.Encoder.toeplitz([Fraction(1, 10**400)], 5),
    ],
)
def test_what_has_no_inverse_is_refused(encoder: Any) -> None:
    with pytest.raises(ParameterError, match=r"^encoder must be an Encoder of a strategy"):
        CorrelatedNoise(encoder)
