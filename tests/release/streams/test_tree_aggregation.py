"""Running sums: those of a whole binary tree of noisy nodes."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.errors import IncompatibleError, ParameterError
from hockeystick.mechanisms import TreeAggregation
from hockeystick.release import tree_aggregation
from hockeystick.release.noise._grid import grid_of
from hockeystick.release.samplers import rounded_gaussian
from hockeystick.release.streams import tree_aggregation as tree_module
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
    mechanism = TreeAggregation(1.5, leaves=leaves)
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


def test_one_row_moves_each_node_by_no_more_than_the_noise_is_for() -> None:
    """And is in as many nodes as the mechanism says, of all that are ever used."""
    leaves = 100
    used = {node for t in range(1, leaves + 1) for node in nodes_of(t)}
    in_nodes = [sum(a <= row <= b for a, b in used) for row in range(1, leaves + 1)]
    assert max(in_nodes) <= TreeAggregation(1.0, leaves=leaves).height


def test_the_noise_has_the_variance_of_the_nodes() -> None:
    """Sums of many columns after 7 rows, 3 nodes, and 8 rows, one node."""
    run = tree_aggregation(TreeAggregation(4.0, leaves=8), 20_000, 0.5, bits=seeded(2))
    found = [run.add(np.zeros(20_000)).std() for _ in range(8)]
    for t, deviation in enumerate(found, start=1):
        assert abs(deviation / (2.0 * math.sqrt(t.bit_count())) - 1) < 6 / math.sqrt(40_000)


def test_a_full_tree_takes_no_more_rows() -> None:
    run = tree_aggregation(TreeAggregation(1.0, leaves=2), 1, 1.0)
    run.add([0.0])
    run.add([0.0])
    with pytest.raises(IncompatibleError, match="full"):
        run.add([0.0])
    with pytest.raises(IncompatibleError, match="full"):
        tree_aggregation(TreeAggregation(1.0, leaves=0), 1, 1.0, bits=none_left).add([0.0])


def test_a_row_whose_noise_failed_is_not_added() -> None:
    fails = [True, False]

    def bits(count: Any) -> Any:
        if fails.pop(0):
            raise OSError("no entropy")
        return np.full(count, 2**63, dtype=np.uint64)

    run = tree_aggregation(TreeAggregation(1.0, leaves=2), 1, 1.0, bits=bits)
    with pytest.raises(OSError, match="no entropy"):
        run.add([1.0])
    assert run.rows == 0
    noise = float(run.add([1.0])[0]) - 1.0
    assert 0 < noise < 1  # of u = 1/2 alone


def test_without_noise_the_sums_come_out() -> None:
    run = tree_aggregation(TreeAggregation(0.0, leaves=3), 2, 1.0, bits=none_left)
    assert [run.add(row).tolist() for row in ([1, 2], [0.5, 0.25], [-1, 0])] == [
        [1.0, 2.0], [1.5, 2.25], [0.5, 2.25]
    ]  # fmt: skip


def test_the_tree_is_charged_once_before_any_bit() -> None:
    account, tree = hs.Accountant(), TreeAggregation(5.0, leaves=10)
    run = tree_aggregation(tree, 1, 1.0, charge=account, bits=seeded(1))
    assert account.plan == tree
    run.add([1.0])
    assert len(account) == 1
    spending = hs.calibration.Filter(hs.ZCDP(1e-3))
    with pytest.raises(hs.errors.BudgetExhausted):
        tree_aggregation(tree, 1, 1.0, charge=spending, bits=none_left)


def test_sums_that_get_too_large_are_refused_and_change_nothing() -> None:
    run = tree_aggregation(TreeAggregation(1.0, leaves=5), 1, 1.0)
    run.add([2.0**41])
    with pytest.raises(ParameterError, match=r"^row must be"):
        run.add([2.0**42])
    with pytest.raises(ParameterError, match=r"^row must be"):
        run.add([1e300])
    assert run.rows == 1


@pytest.mark.parametrize("sign", [1, -1])
def test_sums_of_the_largest_rows_do_not_wrap(sign: int) -> None:
    """Two of 2^62 steps are 2^63, which as 64 bits is negative and its own size."""
    run = tree_aggregation(TreeAggregation(0.0, leaves=5), 1, 1.0)
    assert run.add([sign * 2.0**42]) == sign * 2.0**42
    with pytest.raises(ParameterError, match=r"^row must be"):
        run.add([sign * 2.0**42])
    assert run.rows == 1


@pytest.mark.parametrize(
    ("wrong", "arguments"),
    [
        ("mechanism", (hs.Gaussian(1), 1, 1.0)),
        ("mechanism", (TreeAggregation(math.inf, leaves=2), 1, 1.0)),
        ("size", (TreeAggregation(1.0, leaves=2), 0, 1.0)),
        ("size", (TreeAggregation(1.0, leaves=2), 1.5, 1.0)),
        ("sensitivity", (TreeAggregation(1.0, leaves=2), 1, 0)),
        ("sensitivity", (TreeAggregation(1.0, leaves=2), 1, math.nan)),
    ],
)
def test_bad_arguments_are_named(wrong: Any, arguments: Any) -> None:
    account = hs.Accountant()
    with pytest.raises(ParameterError, match=f"^{wrong} must be"):
        tree_aggregation(*arguments, charge=account, bits=none_left)
    assert len(account) == 0


@pytest.mark.parametrize("row", [[math.nan, 1], [1.0], [[1.0, 2.0]], 3.0, ["a", "b"], None])
def test_bad_rows_are_named(row: Any) -> None:
    run = tree_aggregation(TreeAggregation(1.0, leaves=2), 2, 1.0, bits=none_left)
    with pytest.raises(ParameterError, match=r"^row must be"):
        run.add(row)
    assert run.rows == 0


def test_a_sum_has_the_noise_of_each_of_its_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter(2.0**k for k in range(7))
    monkeypatch.setattr(
        tree_module, "rounded_gaussian", lambda *_, **__: np.array([next(drawn)], dtype=np.int64)
    )
    run = tree_aggregation(TreeAggregation(1.0, leaves=7), 1, 2.0**20)
    sums = [run.add([0.0])[0] for _ in range(7)]
    assert [one / sums[0] for one in sums] == [1, 2, 6, 8, 24, 40, 104]
