"""The arrays that audits and attacks take: checked once, by name."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hockeystick.errors import ParameterError

Array = NDArray[np.float64]

# The kinds of numpy that hold real numbers, and those that hold truth values as 0 and 1.
REAL: Final = "fiu"
FLAGS: Final = "biuf"


def as_array(name: str, values: Any, allowed: str) -> NDArray[Any]:
    """Return an array, or raise; an array that hides some of its values is refused."""
    if isinstance(values, np.ma.MaskedArray):
        raise ParameterError(name, values, f"{allowed}, without a mask")
    try:
        return np.asarray(values)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise ParameterError(name, values, allowed) from None


def numbers(
    name: str, values: Any, axes: str, *, fewest: int = 1, most: int | None = None
) -> Array:
    """Return values as an array of finite floats, not empty, with so many axes, or raise."""
    last = fewest if most is None else most
    array = as_array(name, values, _allowed(axes))
    real = array.dtype.kind in REAL
    with np.errstate(over="ignore"):
        found = np.asarray(array, dtype=np.float64) if real else array
    if not real or not fewest <= found.ndim <= last or found.size == 0:
        told = f"an array of {found.dtype} of shape {found.shape}"
        raise ParameterError(name, told, _allowed(axes))
    if not np.isfinite(found).all():
        count = int(np.sum(~np.isfinite(found)))
        raise ParameterError(name, f"{count} that are not finite", _allowed(axes))
    return found


def flags(name: str, values: Any, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return values as booleans of this shape, or raise; 0 and 1 are booleans too."""
    allowed = f"truth values of shape {shape}"
    array = as_array(name, values, allowed)
    if array.shape != shape:
        raise ParameterError(name, f"an array of shape {array.shape}", allowed)
    if array.dtype.kind not in FLAGS or not np.isin(array, (0, 1)).all():
        raise ParameterError(name, f"an array of {array.dtype} with other values", allowed)
    return array.astype(np.bool_)


def fits(name: str, array: Array, shape: tuple[int, ...], axes: str) -> Array:
    """Return an array whose last axes have this shape, or raise."""
    if array.shape[array.ndim - len(shape) :] != shape:
        allowed = f"numbers for {axes}, of shape {shape}"
        raise ParameterError(name, f"an array of shape {array.shape}", allowed)
    return array


def _allowed(axes: str) -> str:
    """What is allowed, in words."""
    return f"finite numbers for {axes}"
