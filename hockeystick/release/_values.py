"""Checks of the data that people randomize."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from hockeystick.errors import ParameterError
from hockeystick.mechanisms.base import Mechanism

if TYPE_CHECKING:
    from numpy.typing import NDArray


_Kind = TypeVar("_Kind", bound=Mechanism)


def of_kind(mechanism: Any, kind: type[_Kind]) -> _Kind:
    """Return a mechanism of the kind that a function is for, or raise."""
    if not isinstance(mechanism, kind):
        raise ParameterError("mechanism", mechanism, f"a {kind.__name__}")
    return mechanism


def category_array(name: str, values: Any, categories: int) -> NDArray[np.int64]:
    """Return categories as an array, or raise if one is none of 0..K-1."""
    array = np.asarray(values)
    whole = array.ndim == 1 and (array.dtype.kind in "iu" or array.size == 0)
    if not whole or bool(((array < 0) | (array >= categories)).any()):
        raise ParameterError(name, values, f"a row of integers from 0 to {categories - 1}")
    return array.astype(np.int64)


def real_array(name: str, values: Any, low: float, high: float) -> NDArray[np.float64]:
    """Return at least one number as an array, or raise if one is outside an interval."""
    array = np.asarray(values)
    usual = array.ndim == 1 and array.size > 0 and array.dtype.kind in "iuf"
    if not usual or not bool(((array >= low) & (array <= high)).all()):
        raise ParameterError(name, values, f"a row of one or more numbers from {low:g} to {high:g}")
    return array.astype(np.float64)
