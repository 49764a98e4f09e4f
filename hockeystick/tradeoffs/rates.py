"""The rates at which a function is asked for, and answers in their shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hockeystick._validate import PARAMETERS
from hockeystick.errors import ParameterError
from hockeystick.numerics import ULP
from hockeystick.tradeoffs.profiles.profile import Array

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_LEAST_LOG: Final = -700.0
_LOGS_ALLOWED: Final = "a number <= 0, or an array of such"


def _rates(name: str, values: ArrayLike) -> Array:
    """Return false positive rates as a flat array, or raise."""
    rates = _numbers(name, values, "a number from 0 to 1, or an array of such")
    inside = (rates >= 0.0) & (rates <= 1.0)
    if not inside.all():
        outside = float(rates[~inside].flat[0])
        raise ParameterError(name, outside, PARAMETERS["delta"].allowed)
    return rates.ravel()


def _numbers(name: str, values: ArrayLike, allowed: str) -> Array:
    """Return numbers as an array of floats, or raise; texts and truth values are no numbers."""
    try:
        given = np.asarray(values)
        if given.size and given.dtype.kind not in "iufO":
            raise ParameterError(name, values, allowed)
        return np.asarray(given, dtype=np.float64)
    except ParameterError:
        raise
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(name, values, allowed) from None


def shaped(name: str, values: ArrayLike, ask: Callable[[Array], Array]) -> Any:
    """Return answers in the shape of what was asked, a float for a number, checked rates for it."""
    return _like(values, ask, _rates(name, values))


def shaped_logs(values: ArrayLike, ask: Callable[[Array], Array]) -> Any:
    """Return answers in the shape of the logarithms that were asked for."""
    logs = _numbers("log_alpha", values, _LOGS_ALLOWED)
    if not (logs <= 0.0).all():
        raise ParameterError("log_alpha", float(logs[~(logs <= 0.0)].flat[0]), _LOGS_ALLOWED)
    return _like(values, ask, logs.ravel())


def _like(values: ArrayLike, ask: Callable[[Array], Array], flat: Array) -> Any:
    """Return the answers to a flat array in the shape of the values it came from."""
    shape = np.shape(values)
    answers = ask(flat if flat.size else np.zeros(1))[..., : flat.size]
    shaped = answers.reshape((*answers.shape[:-1], *shape))
    if shape != ():
        return shaped
    return float(shaped) if shaped.ndim == 0 else tuple(float(one) for one in shaped)


def guessing(alpha: Array) -> Array:
    """Return ``1 - alpha``, rounded up: the type II error of guessing."""
    rest = 1.0 - alpha
    return np.where(1.0 - rest == alpha, rest, np.minimum(np.nextafter(rest, 2.0), 1.0))


def exp_of_logs(logs: Array, sign: float) -> Array:
    """Return ``e^logs``, rounded up (sign 1) or down (-1), as rates; refuse to underflow."""
    if not (logs >= _LEAST_LOG).all():
        least = float(logs.min())
        raise ParameterError("log_alpha", least, f"at least {_LEAST_LOG:g} for this function")
    return np.minimum(np.exp(logs) * (1.0 + sign * 8.0 * ULP), 1.0)
