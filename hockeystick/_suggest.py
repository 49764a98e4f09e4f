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
    "add_or_remove": ("add-remove",),
    "unbounded": ("add-remove",),
    "bounded": ("replace-one",),
    "substitution": ("replace-one",),
    "replace": ("replace-one",),
    "replace_special": ("zero-out",),
}
_LEAST_ALIKE: Final = 0.7


def near(name: str, names: Iterable[str]) -> str | None:
    """Return which of the names is meant, None if none is near."""
    plain = {_plain(one): one for one in names}
    wanted = _plain(name)
    known = [plain[_plain(one)] for one in _ALIASES.get(wanted, ()) if _plain(one) in plain]
    close = difflib.get_close_matches(wanted, plain, n=1, cutoff=_LEAST_ALIKE)
    return known[0] if known else plain[close[0]] if close else None


def hint(name: object, names: Iterable[str]) -> str:
    """Return which of the names is meant, to follow an error; nothing if none is near."""
    found = near(name, names) if isinstance(name, str) else None
    return "" if found is None else f" (did you mean {found!r}?)"


def same_name(value: object, names: Iterable[str]) -> object:
    """Return the name that differs from a text in capitals and dashes alone, else what was given.

    Example:
        >>> from hockeystick._suggest import same_name
        >>> same_name("zcdp", ["PureDP", "ZCDP"]), same_name("rho", ["ZCDP"])
        ('ZCDP', 'rho')
    """
    if not isinstance(value, str):
        return value
    return {_plain(one): one for one in names}.get(_plain(value), value)


def _plain(name: str) -> str:
    return name.strip().lower().replace("-", "_")
