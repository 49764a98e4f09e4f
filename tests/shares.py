"""Cases that only the rest of the tests asks; the marker `shared` leaves some to the usual run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Final

import pytest

FRESH: Final = os.environ.get("HYPOTHESIS_PROFILE") == "fresh"


def rarely(cases: Iterable[Any], rest: int = 1) -> list[Any]:
    """Return one in `rest` of some cases, all where Hypothesis draws fresh examples."""
    listed = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*case, marks=pytest.mark.slow) for case in listed[:: 1 if FRESH else rest]]
