"""Of many cases that ask the same: some for the usual run, some for the rest, all where fresh.

The cases of a law lie close to one another. Those of the usual run are asked every time, and every
one of them where Hypothesis draws fresh examples, as in `make test-all`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Final

import pytest

FRESH: Final = os.environ.get("HYPOTHESIS_PROFILE") == "fresh"


def shared(cases: Iterable[Any], usual: int, rest: int = 2) -> list[Any]:
    """Return one of each `usual` cases for the usual run, and one in `rest` of the others."""
    listed = list(cases)
    others = [case for index, case in enumerate(listed) if index % usual]
    return [*listed[::usual], *rarely(others, rest)]


def rarely(cases: Iterable[Any], rest: int = 1) -> list[Any]:
    """Return one in `rest` of some cases, for the rest only."""
    listed = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*case, marks=pytest.mark.slow) for case in listed[:: 1 if FRESH else rest]]
