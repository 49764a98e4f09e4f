"""Rows of answers are tuples, tables, and data frames where pandas is installed."""

import math
import pickle
import sys
from dataclasses import replace

import pytest

import hockeystick as hs
from hockeystick._tables import Rows, aligned, as_html, cells_of
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


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (0.5, "0.4 times below the truth"),
        # A last digit more or less, as libraries of functions differ.
        (math.nextafter(1.25, 0), "just below the truth"),
        (1.25, "the truth"),
        (math.nextafter(1.25, 2), "the same to 4 digits"),
        (1.26, "1.008 times"),
        (math.inf, "no bound"),
    ],
)
def test_a_value_is_told_where_it_is_beside_the_truth(value: float, told: str) -> None:
    certified = hs.Certified(0.0, value, value, quantity="epsilon", accountant="rdp")
    assert Truth(1.25, 1.25).beside(replace(GUESS, value=value)) == told
    assert Truth(1.25, 1.25).beside(certified) == told


def test_rows_are_tuples_that_can_be_sent_to_other_processes() -> None:
    accountant, *_ = (row.accountant for row in ROWS)
    assert (accountant, ROWS[1:], len(ROWS)) == ("rdp", tuple(ROWS)[1:], 3)
    again = pickle.loads(pickle.dumps(ROWS))
    assert (again, type(again)) == (ROWS, Comparison)
    assert (str(Comparison()), aligned([])) == ("", "")
    assert as_html([]).startswith("<table>")
    assert ">&lt;none&gt;</td>" in ROWS._repr_html_()
    wide = hs.Certified(0.1, 0.2, 0.2000000001, quantity="epsilon", accountant="rdp")
    assert cells_of(wide, "")[0] == "0.200001"


def test_without_pandas_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(HockeystickError, match=r"pip install 'hockeystick\[pandas\]'"):
        Rows(()).to_dataframe()
