"""What the mechanisms with noise on integers share."""

from __future__ import annotations

import math
from typing import Final

from hockeystick import _validate
from hockeystick._validate import MAX_COUNT, whole_numbers
from hockeystick.errors import NoGroupFormError, ParameterError

_SENSITIVITY: Final = whole_numbers("D", 1, (1, 1000))
_NO_VECTOR: Final = (
    "; it is one integer, and no vector whose norm changes by as much, which is a composition of "
    "its entries"
)


def sensitivity_of(value: object, of_one: str) -> int:
    """Return the sensitivity of an integer query as an int, or raise.

    Args:
        value: What was given for it.
        of_one: The mechanism at sensitivity 1, as it is written.
    """
    try:
        return _validate.count("sensitivity", value, _SENSITIVITY)
    except ParameterError as error:
        if not isinstance(value, float) or not 0 < value < MAX_COUNT:
            raise
        cells = round(value * value)
        k = cells if math.isclose(value * value, cells, rel_tol=1e-6) else "k"
        told = f" (a record in {k} cells, each changed by 1: {of_one} ** {k})"
        raise ParameterError(error.name, value, error.allowed + told) from None


def grown(sensitivity: int, size: int) -> int:
    """Return the sensitivity for a group, or raise where it is above all that are analysed."""
    moved = sensitivity * size
    if moved > MAX_COUNT:
        raise NoGroupFormError(
            f"a sensitivity of {sensitivity:,} for groups of {size:,} is above {MAX_COUNT:,}"
        )
    return moved


def assumption(noise: str, sensitivity: int) -> str:
    """Return what must hold of fresh integer noise and the query's sensitivity."""
    vector = "" if sensitivity == 1 else _NO_VECTOR
    return (
        f"Fresh {noise} noise is drawn exactly and added to an integer that changes by at most "
        f"{sensitivity:,} between neighbouring data sets{vector}."
    )


def details(parameter: str, sensitivity: int) -> tuple[str, ...]:
    """Return what belongs in brackets: the noise, and the sensitivity unless it is 1."""
    return (parameter,) if sensitivity == 1 else (parameter, f"sensitivity {sensitivity}")
