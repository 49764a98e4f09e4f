"""Rows of answers are tuples, tables, and data frames where pandas is installed."""

import pickle
import sys

import pytest

import hockeystick as hs
from hockeystick.accountants import Comparison, Row
from hockeystick.errors import HockeystickError
from hockeystick.results import Rows, cells_of

PROVEN = hs.Certified(1.0, 1.0, 1.25, quantity="epsilon", accountant="rdp")
GUESS = hs.Approximate(1.1, quantity="epsilon", accountant="gdp")
ROWS = Comparison(
    (
        Row("rdp", "bound", PROVEN, "", 0.5),
        Row("gdp", "approximation", GUESS, "", 0.1),
        Row("basic", "bound", None, "<none>", 0.0),
    )
)


def test_rows_are_tuples_that_can_be_sent_to_other_processes() -> None:
    accountant, *_ = (row.accountant for row in ROWS)
    assert (accountant, ROWS[1:], len(ROWS)) == ("rdp", tuple(ROWS)[1:], 3)
    again = pickle.loads(pickle.dumps(ROWS))
    assert (again, type(again)) == (ROWS, Comparison)
    assert (str(Comparison()), str(Rows(()))) == ("", "")
    wide = hs.Certified(0.1, 0.2, 0.2000000001, quantity="epsilon", accountant="rdp")
    assert cells_of(wide, "")[0] == "0.200001"


def test_without_pandas_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(HockeystickError, match=r"pip install 'hockeystick\[pandas\]'"):
        Rows(()).to_dataframe()
