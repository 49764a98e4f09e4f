"""Rows of answers are tuples, tables, and data frames where pandas is installed."""

import math
import pickle
import sys
from types import SimpleNamespace
from typing import Any

import pytest

import hockeystick as hs
from hockeystick._tables import Rows, aligned, as_html, cells_of, flat
from hockeystick.accountants import Comparison, Row
from hockeystick.accountants.comparison import Truth
from hockeystick.errors import HockeystickError

PROVEN = hs.Certified(1.0, 1.0, 1.25, quantity="epsilon", accountant="rdp")
GUESS = hs.Approximate(1.1, quantity="epsilon", accountant="gdp")
ROWS = Comparison(
    (
        Row("rdp", "bound", PROVEN, "", 0.5),
        Row("gdp", "approximation", GUESS, "", 0.1),
        Row("basic", "bound", None, "<none>", 0.0),
    )
)


def estimate(value: float) -> hs.Approximate:
    return hs.Approximate(value, quantity="epsilon", accountant="gdp")


def proven(lower: float, upper: float) -> hs.Certified:
    return hs.Certified(lower, upper, upper, quantity="epsilon", accountant="rdp")


def test_a_comparison_prints_as_a_table_whose_upper_ends_are_rounded_up() -> None:
    assert str(ROWS).splitlines() == [
        "accountant  kind           answer     next to truth            proof",
        "rdp         bound          1.25       best proven              proven in [1, 1.25]",
        "gdp         approximation  ~ 1.10000  between the proven ends  "
        "approximation, no guarantee",
        "basic       bound                                              <none>",
    ]
    assert repr(ROWS) == str(ROWS)
    wide = hs.Certified(0.1, 0.2, 0.2000000001, quantity="epsilon", accountant="rdp")
    assert cells_of(wide, "")[0] == "0.200001"
    shown = ROWS._repr_html_()
    assert ">&lt;none&gt;</td>" in shown
    assert shown.count("<tr>") == len(ROWS) + 1


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (0.5, "0.4 times below the truth"),
        (1.2, "0.96 times below the truth"),
        # A last digit more or less, as libraries of functions differ.
        (math.nextafter(1.25, 0), "just below the truth"),
        (1.25, "the truth"),
        (math.nextafter(1.25, 2), "the same to 4 digits"),
        (1.26, "1.008 times"),
        (math.inf, "no bound"),
    ],
)
def test_a_value_is_told_where_it_is_beside_the_truth(value: float, told: str) -> None:
    assert Truth(1.25, 1.25).beside(estimate(value)) == told
    assert Truth(1.25, 1.25).beside(proven(0.0, value)) == told


def test_other_rows_are_a_table_in_a_notebook_with_proven_ends_rounded_outwards() -> None:
    wide = hs.Certified(0.12345678, 0.2, 0.2000000001, quantity="epsilon", accountant="rdp")
    rows = Rows((Row("rdp", "bound", wide, "", 0.5), *ROWS[1:]))
    shown = rows._repr_html_()
    assert ">0.123456</td>" in shown
    assert ">0.200001</td>" in shown
    assert shown.count("<tr>") == len(rows) + 1
    assert "None" not in shown


def test_rows_are_tuples_that_can_be_sent_to_other_processes() -> None:
    accountant, *_ = (row.accountant for row in ROWS)
    assert (accountant, ROWS[1:], len(ROWS)) == ("rdp", tuple(ROWS)[1:], 3)
    again = pickle.loads(pickle.dumps(ROWS))
    assert (again, type(again)) == (ROWS, Comparison)
    assert (str(Comparison()), aligned([])) == ("", "")
    assert as_html([]).startswith("<table>")


def test_a_data_frame_has_a_column_for_each_thing_that_a_row_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=list))
    columns = ("accountant", "kind", "lower", "estimate", "upper", "reason", "seconds")
    assert [tuple(row.items()) for row in ROWS.to_dataframe()] == [
        tuple(zip(columns, values, strict=True))
        for values in (
            ("rdp", "bound", 1.0, 1.0, 1.25, "", 0.5),
            ("gdp", "approximation", None, 1.1, None, "", 0.1),
            ("basic", "bound", None, None, None, "<none>", 0.0),
        )
    ]
    assert flat({"a": {"b": {"c": 1}, "d": None}}) == {"a_b_c": 1, "a_d": None}


def test_without_pandas_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(HockeystickError, match=r"pip install 'hockeystick\[pandas\]'"):
        Rows(()).to_dataframe()


@pytest.mark.extras
def test_pandas_takes_what_is_known() -> None:
    pandas: Any = pytest.importorskip("pandas", reason="data frames need pandas")
    plan = hs.DPSGD(noise_multiplier=1, examples=600, batch_size=60, epochs=1)
    target = hs.ApproxDP(epsilon=2, delta=1e-5)
    points = hs.calibration.frontier(plan, target, epochs=[1, 2], batch_sizes=[60])
    frame = points.to_dataframe()
    assert frame["noise_multiplier"].tolist() == [one.noise_multiplier for one in points]
    rows = hs.compare(hs.Laplace(2), delta=0.1).to_dataframe().set_index("accountant")
    assert rows.loc["closed-form", "upper"] == hs.epsilon(hs.Laplace(2), delta=0.1).upper
    assert pandas.isna(rows.loc["gdp", "upper"])
    grid = {"epochs": [1, 2]}
    swept = pandas.DataFrame(hs.sweep(grid, hs.calibration.AskEpsilon(plan, delta=1e-5)))
    assert swept["upper"].is_monotonic_increasing
