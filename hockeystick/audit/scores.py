"""What a caller passes in, checked once, by name: arrays, scores, a confidence, a seed."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hockeystick._validate import Domain, count, real
from hockeystick.errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Array: TypeAlias = NDArray[np.float64]
Scores: TypeAlias = Array

# The kinds of numpy that hold real numbers, and those that hold truth values as 0 and 1.
REAL: Final = "fiu"
FLAGS: Final = "biuf"
_CONFIDENCE: Final = Domain(
    symbol="1 - a", low=0, high=1, low_open=True, high_open=True, typical=(0.9, 0.99)
)
_SEED: Final = Domain(symbol="s", low=0, high=2**63 - 1, typical=(0, 100), whole=True)
_ALLOWED: Final = "a one-dimensional array of one or more numbers, none of them nan"


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


def checked_scores(name: str, values: ArrayLike) -> Scores:
    """Return scores as floats, or raise; infinite ones are only compared, as all others."""
    scores = as_array(name, values, _ALLOWED)
    if scores.dtype.kind not in REAL or scores.ndim != 1 or not scores.size:
        raise ParameterError(name, values, _ALLOWED)
    with np.errstate(over="ignore"):
        scores = scores.astype(np.float64)
    if np.isnan(scores).any():
        raise ParameterError(name, values, _ALLOWED)
    return scores


def error_probability(confidence: object) -> float:
    """Return 1 - confidence, of the decimal that the confidence prints as."""
    given = real("confidence", confidence, _CONFIDENCE)
    from hockeystick.numerics import decimal

    return min(float(1 - decimal(given)), 1.0 - given) or math.ulp(0.0)


def mixed_seed(seed: object, *given: NDArray[Any]) -> int:
    """Return a seed that depends on all that was given, too, or raise.

    With a seed alone, ties would fall in the same way in all audits of as many scores, and the
    error probability of those could be anything: it would be right over seeds only.
    """
    digest = hashlib.blake2b(count("seed", seed, _SEED).to_bytes(8, "little"), digest_size=16)
    for one in given:
        digest.update(one.size.to_bytes(8, "little"))
        digest.update(np.ascontiguousarray(one).tobytes())
    return int.from_bytes(digest.digest(), "little")
