"""The arrays that attacks take: checked once, by name."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hockeystick.errors import ParameterError

Array = NDArray[np.float64]


def numbers(
    name: str, values: Any, axes: str, *, fewest: int = 1, most: int | None = None
) -> Array:
    """Return values as an array of finite floats, not empty, with so many axes, or raise."""
    last = fewest if most is None else most
    try:
        array = np.asarray(values)
        real = array.dtype.kind in "fiu"
        found = np.asarray(array, dtype=np.float64) if real else array
    except (TypeError, ValueError):
        raise ParameterError(name, values, _allowed(axes)) from None
    if not real or not fewest <= found.ndim <= last or found.size == 0:
        told = f"an array of {found.dtype} of shape {found.shape}"
        raise ParameterError(name, told, _allowed(axes))
    if not np.isfinite(found).all():
        count = int(np.sum(~np.isfinite(found)))
        raise ParameterError(name, f"{count} that are not finite", _allowed(axes))
    return found


def flags(name: str, values: Any, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return values as booleans of this shape, or raise; 0 and 1 are booleans too."""
    allowed = f"booleans of shape {shape}"
    try:
        array = np.asarray(values)
    except ValueError:
        raise ParameterError(name, values, allowed) from None
    if array.shape != shape:
        raise ParameterError(name, f"an array of shape {array.shape}", allowed)
    if array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
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
