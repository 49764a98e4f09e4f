"""Parallel composition, and what replacing a record makes of it."""

import math
from typing import Any

import numpy as np
import pytest

import hockeystick as hs

CASES = [
    ([hs.PureDP(0.5), hs.PureDP(1.0), hs.PureDP(0.1)], hs.PureDP(1.0), hs.PureDP(1.5)),
    (
        [hs.ApproxDP(1.0, 1e-6), hs.ApproxDP(0.5, 1e-5)],
        hs.ApproxDP(1.0, 1e-5),
        hs.ApproxDP(1.5, 1.1e-5),
    ),
    ([hs.GDP(3.0), hs.GDP(4.0), hs.GDP(1.0)], hs.GDP(4.0), hs.GDP(5.0)),
    ([hs.ZCDP(0.25), hs.ZCDP(0.5)], hs.ZCDP(0.5), hs.ZCDP(0.75)),
    ([hs.TCDP(0.25, 10), hs.TCDP(0.5, 20)], hs.TCDP(0.5, 10), hs.TCDP(0.75, 10)),
    (
        [hs.RenyiDP({2: 0.5, 4: 1.0}), hs.RenyiDP({2: 0.25, 4: 2.0, 8: 3.0})],
        hs.RenyiDP({2: 0.5, 4: 2.0}),
        hs.RenyiDP({2: 0.75, 4: 3.0}),
    ),
]


def numbers(notion: hs.notions.Notion) -> Any:
    """Return what a notion is made of, as an array."""
    fields = [getattr(notion, name) for name in type(notion).__dataclass_fields__]
    return np.hstack([np.ravel(np.array(one, dtype=float)) for one in fields if one is not None])


@pytest.mark.parametrize(("parts", "worst", "two"), CASES)
def test_one_part_changes_or_two_where_a_record_is_replaced(
    parts: list[hs.notions.Notion], worst: hs.notions.Notion, two: hs.notions.Notion
) -> None:
    assert hs.notions.parallel(parts) == worst
    assert hs.notions.parallel(parts, "zero-out") == worst
    replaced = numbers(hs.notions.parallel(parts, "replace-one"))
    assert (numbers(two) <= replaced).all()
    assert np.allclose(replaced, numbers(two), rtol=1e-15, atol=0.0)


@pytest.mark.parametrize("parts", [case[0] for case in CASES])
def test_the_order_of_the_parts_does_not_matter_and_one_is_itself(
    parts: list[hs.notions.Notion],
) -> None:
    for adjacency in ("add-remove", "replace-one"):
        assert hs.notions.parallel(parts[::-1], adjacency) == hs.notions.parallel(parts, adjacency)
        assert hs.notions.parallel(parts[:1], adjacency) == parts[0]


def test_trade_off_functions_are_enveloped_or_multiplied() -> None:
    parts = [
        hs.FDP(hs.tradeoffs.G(1.0)),
        hs.FDP(hs.tradeoffs.LaplaceTradeOff(1.0)),
        hs.FDP(hs.tradeoffs.G(0.5)),
    ]
    rates = np.linspace(0.0, 1.0, 41)
    worst = hs.notions.parallel(parts).tradeoff
    for part in parts:
        assert (worst(rates) <= part.tradeoff.bounds(rates)[1]).all()
    least = np.min([part.tradeoff.bounds(rates)[1] for part in parts], axis=0)
    assert (worst.bounds(rates)[1] >= least - 0.02).all()
    moved = hs.notions.parallel([parts[0], parts[2]], "replace-one").tradeoff
    assert moved == hs.tradeoffs.G(1.0) @ hs.tradeoffs.G(0.5)


def test_infinite_parts_stay_infinite() -> None:
    assert hs.notions.parallel([hs.GDP(math.inf), hs.GDP(1)], "replace-one").mu == math.inf
    assert (
        hs.notions.parallel([hs.PureDP(math.inf), hs.PureDP(1)], "replace-one").epsilon == math.inf
    )


@pytest.mark.parametrize("parts", [[], [hs.PureDP(1), hs.GDP(1)], [1.0], 3, hs.PureDP(1), "x"])
def test_what_is_no_list_of_one_notion_is_refused(parts: Any) -> None:
    with pytest.raises(hs.errors.ParameterError, match="parts must be guarantees of one notion"):
        hs.notions.parallel(parts)


def test_divergences_need_an_order_in_common() -> None:
    with pytest.raises(hs.errors.IncompatibleError, match="no order"):
        hs.notions.parallel([hs.RenyiDP({2: 1}), hs.RenyiDP({3: 1})])
