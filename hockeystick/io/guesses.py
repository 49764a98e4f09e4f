"""What is wrong, with a guess at what was meant."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from hockeystick._synonyms import meant, share_of, told
from hockeystick._validate import PARAMETERS
from hockeystick.errors import HockeystickError, ParameterError
from hockeystick.io.numbers import as_written_here

WHOLE: Final = "an integer"
# What is no share of anything, where it may be infinite; --at-most of a delta may not.
_EPSILONS: Final = ("epsilon", "at_most", "budget_epsilon")
_PER_CENT: Final = re.compile(r"\s*([\d.]+)\s*(?:%|percent|per cent)\s*")


def with_guess(error: HockeystickError) -> str:
    """Return what an error says, its guess at what was meant included; of None, only that.

    Of a number that is written as elsewhere, it also says how to write it here.
    """
    if not isinstance(error, ParameterError):
        return str(error)
    if not isinstance(error.value, str):
        return str(error).removesuffix("; got None")
    here, said = as_written_here(error.value), str(error)
    percentage = _PER_CENT.fullmatch(error.value)
    if percentage and error.name.rpartition(".")[2] in _EPSILONS and "inf" in error.allowed:
        return f"{said}; epsilon is no percentage: write {percentage[1]}"
    if error.allowed.startswith(WHOLE):
        return said + _of_count(error.name, here, is_told="(write " in said)
    if not here:
        return said
    fitting = ", or ".join(one for one in here.split(", or ") if _may_be(error.name, one))
    return said.partition(" (write ")[0] + (f"; write {fitting}" if fitting else "")


def _may_be(name: str, written: str) -> bool:
    """Return whether a parameter may have the value that is guessed at, as far as that is known."""
    domain = PARAMETERS.get(name.rpartition(".")[2])
    return domain is None or domain.contains(float(written.removeprefix("one value: ")))


def _of_count(name: str, here: str, *, is_told: bool) -> str:
    """Return how to write a whole number, or a share where one was given; nothing for others."""
    _, _, one = here.partition(", or one value: ")
    if one:
        return f"; write one value: {one}"
    try:
        value = float(here)
    except ValueError:
        return ""
    if value.is_integer() and not is_told:
        return f"; write {here}"
    return share_of(name, value)


def did_you_mean(key: str, allowed: Iterable[str]) -> str:
    """Return a guess at what was meant, to follow an error; nothing where there is none."""
    return told(meant(key, allowed))
