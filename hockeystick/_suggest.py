"""Which name was meant by one that there is not: another spelling of it, or one spelled alike."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

# What papers and other libraries call parameters and neighbours.
_ALIASES: Final = {
    "sigma": ("noise_multiplier",),
    "z": ("noise_multiplier",),
    "noise": ("noise_multiplier", "scale"),
    "eps": ("epsilon",),
    "q": ("rate",),
    "sample_rate": ("rate",),
    "sampling_probability": ("rate",),
    "n": ("examples",),
    "num_examples": ("examples",),
    "t": ("steps", "rounds"),
    "num_steps": ("steps", "rounds"),
    "lot_size": ("batch_size",),
    "batch": ("batch_size",),
    "add_or_remove": ("add-remove",),
    "unbounded": ("add-remove",),
    "bounded": ("replace-one",),
    "substitution": ("replace-one",),
    "replace": ("replace-one",),
    "replace_special": ("zero-out",),
}
_LEAST_ALIKE: Final = 0.7


def hint(name: object, names: Iterable[str]) -> str:
    """Return which of the names is meant, to follow an error; nothing if none is near."""
    if not isinstance(name, str):
        return ""
    plain = {_plain(one): one for one in names}
    known = [one for one in map(_plain, _ALIASES.get(_plain(name), ())) if one in plain]
    close = known or difflib.get_close_matches(_plain(name), plain, n=1, cutoff=_LEAST_ALIKE)
    return f" (did you mean {plain[close[0]]!r}?)" if close else ""


def same_name(value: object, names: Iterable[str]) -> object:
    """Return the name that differs from a text in capitals and dashes alone, else the text."""
    if not isinstance(value, str):
        return value
    return {_plain(one): one for one in names}.get(_plain(value), value)


def _plain(name: str) -> str:
    return name.strip().lower().replace("-", "_")
