"""What is wrong, with a guess at what was meant."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from hockeystick._synonyms import meant
from hockeystick.errors import HockeystickError, ParameterError

_LISTED: Final = re.compile(r"'([^']+)'")
# What others call the values of a parameter, in letters alone, and what they are here. Each is
# looked for within what was given, in this order: "without" comes before "with".
_WITHIN: Final[Mapping[str, Mapping[str, str]]] = {
    "sampling": {
        "without": "fixed-size",
        "noreplac": "fixed-size",
        "nonreplac": "fixed-size",
        "woreplac": "fixed-size",
        "withreplacement": "with-replacement",
        "poisson": "poisson",
        "bernoulli": "poisson",
        "shuffl": "shuffle",
        "permut": "shuffle",
        "ballsandbins": "random-allocation",
        "ballsinbins": "random-allocation",
        "allocat": "random-allocation",
        "fullbatch": "full-batch",
        "fixed": "fixed-size",
    },
    "adjacency": {
        "unbounded": "add-remove",
        "addor": "add-remove",
        "adddelete": "add-remove",
        "bounded": "replace-one",
        "replacespecial": "zero-out",
        "zero": "zero-out",
        "substitut": "replace-one",
        "replac": "replace-one",
        "swap": "replace-one",
        "changeone": "replace-one",
    },
}
# What may mean several of them.
_SEVERAL: Final = {
    ("sampling", one): " (a random set without replacement is 'fixed-size', with replacement "
    "'with-replacement', and 'poisson' draws each example by itself)"
    for one in ("uniform", "random", "uniformsampling", "randomsampling", "subsampling")
}


def with_guess(error: HockeystickError) -> str:
    """Return what an error says, and which of the names that it lists was meant."""
    if not isinstance(error, ParameterError):
        return str(error)
    if not isinstance(error.value, str):
        return str(error).removesuffix("; got None")
    listed = _LISTED.findall(error.allowed)
    return str(error) + _guess(error.name.rpartition(".")[2], error.value, listed)


def did_you_mean(key: str, allowed: Iterable[str]) -> str:
    """Return a guess at what was meant, to follow an error; nothing where there is none."""
    return _told(meant(key, allowed))


def _guess(name: str, value: str, listed: list[str]) -> str:
    """Return a guess at what was meant by the value of a parameter."""
    letters = re.sub(r"[\W_]", "", value).lower()
    several = _SEVERAL.get((name, letters))
    if several is not None:
        return several
    others = _WITHIN.get(name, {})
    found = next((others[one] for one in others if one in letters), None)
    return _told(found if found in listed else meant(value, listed))


def _told(found: str | None) -> str:
    """Return a guess in words."""
    return "" if found is None else f" (did you mean {found!r}?)"
