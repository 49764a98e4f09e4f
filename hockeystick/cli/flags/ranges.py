"""Values of one parameter of a grid file: an array, or a range with both ends."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from hockeystick import _validate
from hockeystick._validate import Domain
from hockeystick.errors import ParameterError, PlanFileError
from hockeystick.io.building import refuse_unknown
from hockeystick.numerics import decimal

_RANGE: Final = ("from", "to", "count", "log", "whole")
_COUNT: Final = Domain(symbol="n", low=2, high=10**6, typical=(5, 100), whole=True)
_END: Final = Domain(symbol="x", low=0, high=math.inf, high_open=True, typical=(0.1, 100))
_POSITIVE: Final = replace(_END, low_open=True)
_A_RANGE: Final = (
    "an array of at least one value, or a table {from = 0.5, to = 8, count = 10}, optionally with "
    "log = true (even on a logarithmic scale) and whole = true (rounded to whole numbers)"
)


def values_of(name: str, given: Any) -> tuple[Any, ...]:
    """Return the values of one parameter, or raise."""
    if isinstance(given, list) and given and not any(isinstance(x, dict | list) for x in given):
        return tuple(given)
    if not isinstance(given, dict):
        raise ParameterError(f"[grid].{name}", given, _A_RANGE)
    refuse_unknown(f"[grid].{name}", given, _RANGE)
    missing = [key for key in _RANGE[:3] if key not in given]
    if missing:
        raise PlanFileError(f"[grid].{name} needs {missing[0]}; it must be {_A_RANGE}")
    flags = [_flag(name, key, given.get(key, False)) for key in ("log", "whole")]
    return _range(name, given, *flags)


def _range(name: str, given: Mapping[str, Any], log: bool, whole: bool) -> tuple[Any, ...]:
    """Return evenly spaced values, both ends exactly as they are given."""
    where, ends = f"[grid].{name}", _POSITIVE if log else _END
    low, high = (_validate.real(f"{where}.{end}", given[end], ends) for end in ("from", "to"))
    last = _validate.count(f"{where}.count", given["count"], _COUNT) - 1
    inner = _logarithmic if log else _even
    spaced = [low, *(inner(low, high, k, last) for k in range(1, last)), high]
    return tuple(dict.fromkeys(round(x) for x in spaced)) if whole else tuple(spaced)


def _even(low: float, high: float, k: int, last: int) -> float:
    """Return the k-th of evenly spaced numbers: the float next to what the decimals mean."""
    first, step = decimal(low), decimal(high) - decimal(low)
    return float(first + step * k / last)


def _logarithmic(low: float, high: float, k: int, last: int) -> float:
    """Return the k-th of numbers, each as many times the one before."""
    return math.exp(math.log(low) + (math.log(high) - math.log(low)) * k / last)


def _flag(name: str, key: str, value: object) -> bool:
    """Return a truth value of a range, or raise."""
    if not isinstance(value, bool):
        raise ParameterError(f"[grid].{name}.{key}", value, "true or false")
    return value
