"""What the mechanisms with noise on integers share."""

from __future__ import annotations

from typing import Final

from hockeystick import _validate
from hockeystick._validate import MAX_COUNT, whole_numbers
from hockeystick.errors import NoGroupFormError

_SENSITIVITY: Final = whole_numbers("D", 1, (1, 1000))
_NO_VECTOR: Final = (
    "; it is one integer, and no vector whose norm changes by as much, which is a composition of "
    "its entries"
)


def sensitivity_of(value: object) -> int:
    """Return the sensitivity of an integer query as an int, or raise."""
    return _validate.count("sensitivity", value, _SENSITIVITY)


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
